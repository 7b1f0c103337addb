"""`if` on nodes with `enable_conditionals=True`, against DALI's."""

from __future__ import annotations

import functools
import types as modules

import numpy as np
import pytest

import ndd

OURS = modules.SimpleNamespace(fn=ndd.fn, types=ndd.types, pipeline_def=ndd.pipeline_def)


def assigned(m, x):
    if x > 1:
        y = x * 10
    else:
        y = x - 5
    return y


def chain(m, x):
    if x > 2:
        y = x * 10
    elif x > 1:
        y = x * 100
    else:
        y = -x
    return y, x


def between(m, x):
    if 0 < x < 3:
        y = x * 10
    else:
        y = x
    if x >= 1 < 2 <= y + 0 < 21 != 20:
        z = x + 100
    else:
        z = x
    return y, z


def returned(m, x):
    if x > 1:
        return x * 10
    return x


def nested(m, x):
    if x > 1:
        y = x
        if x > 2:
            y = y * 7
    else:
        y = x - 1
    return y


def items(m, x):
    kept, listed = {"y": x}, [x, x + 0]
    if x > 1:
        kept["x"] = x * 2
        listed[-1] = x + 5
    else:
        kept["x"] = x
        kept["y"] = x - 1
    return kept["x"], kept["y"], *listed


def split_constants(m, x):
    first, _ = m.fn._conditional.split(np.int32([1, 2]), predicate=m.fn.cast(x, dtype=m.types.BOOL))
    _, second = m.fn._conditional.split(np.int32([3, 4]), predicate=m.fn.cast(x, dtype=m.types.BOOL))
    return m.fn._conditional.merge(first, second, predicate=m.fn.cast(x, dtype=m.types.BOOL))


def logic(m, x):
    y = x
    if x > 0 and x < 3:
        y = x + 100
    if not x > 0 or x == 3:
        y = y + 1000
    return y


def constants(m, x):
    if x > 1:
        y = 5
    else:
        y = 7
    return y


def nobody(m, x):
    if x > 10:
        x = x * 2
    elif x > -1:
        x = x + 1
    return x


def helped(m, x):
    return twice(x), m.fn.stack(x, x)


def twice(x):
    if x > 1:
        return x * 2
    return x


def plain_values(m, x):
    out = []
    for k in range(4):
        if k == 3:
            break
        if k == 1:
            out.append(x * k)
        else:
            out.append(x + k)
    return tuple(out)


def two_of_them(m, x):
    if x > 1:
        a, b = x, x * 2
    else:
        a, b = x * 3, x * 4
    return a, b


def operators(m, x):
    flag = x % 2 == 0
    y = m.fn.cast(m.fn.stack(x, x + 1), dtype=m.types.FLOAT)
    if flag:
        y = m.fn.reductions.sum(y, axes=[0], keep_dims=True)
        z = m.fn.reshape(y, rel_shape=[1.0]) * 2
    else:
        z = m.fn.slice(y, start=[0], end=[1], axes=[0])
    return z


def types_differ(m, x):
    if x > 1:
        x = m.fn.cast(x, dtype=m.types.FLOAT)
    return x


def one_only(m, x):
    if x > 1:
        z = x
    return z


def no_scalar(m, x):
    if m.fn.stack(x, x) > 1:
        x = x + 1
    return x


def attributes(m, x):
    state = modules.SimpleNamespace(a=np.int32(0), b=np.int32(0))
    if x > 1:
        state.a = -x
    elif x == 1:
        state.b = 2 * x
    return state.a, state.b


def drawn_and_read(m, x):
    """Without nodes among their arguments they give whole batches, of which a branch gets its samples."""
    if x % 2 == 0:
        y = m.fn.random.uniform(range=[0, 1], seed=5)
        z = m.fn.external_source(lambda: [np.int32(7 + i) for i in range(4)])
    else:
        y = np.float32(-1)
        z = m.fn.batch_permutation(seed=3)
    return y, z


def parted(m, x):
    flag = x % 2 == 0
    even, odd = m.fn._conditional.split(x, predicate=flag)
    return m.fn._conditional.merge(even * 10, odd - 5, predicate=flag), m.fn._conditional.not_(flag)


def opposites(m, x):
    half = m.fn.cast(x - 1, dtype=m.types.FLOAT16)
    return not half, not x > 1, m.fn.cast(bool(half), dtype=m.types.INT32)


def inner(m, x):
    def halved(v):
        if v > 1:
            v = v // 2
        return v

    return halved(x), halved(x * 3)


def through_a_lambda(m, x):
    return (lambda v: twice(v))(x), OUTSIDE(x)


OUTSIDE = lambda v: (twice(v), halved_outside(v))[1]  # noqa: E731


def made_outside():
    def inner(v):
        if v > 1:
            return v // 2
        return v

    return inner


halved_outside = made_outside()


def by_halves(low, high, v):
    """Calls itself, as a choice among many by `if` does."""
    if high - low == 1:
        return v * 10 + low
    middle = (low + high) // 2
    if v < middle:
        v = by_halves(low, middle, v)
    else:
        v = by_halves(middle, high, v)
    return v


def downwards(n, v):
    if n > 0 and v > n:
        v = upwards(n - 1, v + 1)
    return v


def upwards(n, v):
    if v > n:
        v = downwards(n - 1, v * 2)
    return v


class Namesake:
    def twice(self, v):
        if v > 1:
            v = twice(v)  # the function of the module
        return v

    def again(self, n, v):
        if n > 0 and v > n:
            v = self.again(n - 1, v + 3)
        return v


def recursion(m, x):
    def local(n, v):
        if n > 0 and v > n:
            v = local(n - 1, v + 1)
        return v

    return by_halves(0, 4, x), downwards(4, x), local(2, x), Namesake().twice(x), Namesake().again(2, x)


class Chooser:
    def __call__(self, v):
        if v > 1:
            return v * 3
        return v

    def method(self, v):
        return self(v) + 1

    @staticmethod
    def fixed(v):
        return twice(v)


def wrapped(function):
    @functools.wraps(function)
    def call(*arguments):
        return function(*arguments)

    return call


@wrapped
def decorated(v):
    if v > 2:
        return v - 7
    return v


def callables(m, x):
    chooser = Chooser()
    partial = functools.partial(lambda more, v: halved_outside(v) + more, 5)
    return chooser(x), chooser.method(x), Chooser.fixed(x), partial(x), decorated(x), [twice(v) for v in (x,)].pop()


def of_other_lengths(m, x):
    if x > 1:
        y = (x, x)
    else:
        y = (x, x, x)
    return y[0]


def a_tuple_and_a_node(m, x):
    if x > 1:
        y = (x, x)
    else:
        y = x
    return y


def other_keys(m, x):
    if x > 1:
        y = {"a": x}
    else:
        y = {"b": x}
    return y["a"]


def same_keys(m, x):
    if x > 1:
        y = {"a": x, "b": [x, 1]}
    else:
        y = {"a": x + 1, "b": [-x, 2]}
    return y["a"], *y["b"]


def returned_structures(m, x):
    if x > 1:
        return x, -x
    return x


def read_by_nobody(m, x):
    if x > 1:
        y, z = "a", (x, x)
    else:
        y, z = "b", x  # noqa: F841
    return x


def numbers_become_nodes(m, x):
    if x > 1:
        k = 1
    else:
        k = 1
    return x + (0 if isinstance(k, int) else 100)


def arrays_of_branches(m, x):
    if x > 1:
        y = np.array([1, 2])
    else:
        y = np.array([3, 4])
    return y


def goes_on(m, x):
    for k in range(3):
        if x > 1:
            continue
        x = x + 1 + k
    return x


def items_by_variables(m, x):
    kept, i = [0, 0], 1
    if x > 1:
        kept[i] = x
    else:
        kept[i] = -x
    return kept[1]


def short_batches(m, x):
    kept = []
    if x > 1:
        kept.append(x * 2)
    return kept[0]


def taken_out_of_a_branch(m, x):
    kept = []
    if x > 1:
        kept.append(x * 2)
    return kept[0] + x


def raised_in_a_branch(m, x):
    if x > 100:
        raise ValueError("in a branch")
    return x


def functions_of_python(m, x):
    """They are not called for nobody."""

    def seen(v):
        assert v > 1
        return np.array(v * 10)

    if x > 1:
        x = m.fn.python_function(x, function=seen)
    if x > 1000:
        x = m.fn.python_function(x, function=lambda v: 1 // 0)
    return x


def no_truth_value(m, x):
    return x and x


def condition_of_two(m, x):
    if m.fn.stack(x, x):
        y = x
    else:
        y = x
    return y


def numbers_as_conditions(m, x):
    y = x
    if not x:
        y = x - 1
    if m.fn.cast(x, dtype=m.types.FLOAT):
        y = y * 10
    return y


def in_a_while(m, x):
    while x < 10:
        x = x + 1
    return x


BODIES = (
    assigned, chain, between, returned, nested, logic, constants, nobody, helped, plain_values, two_of_them, operators,
    types_differ, one_only, no_scalar, attributes, drawn_and_read, parted, opposites, inner, through_a_lambda, callables,
    of_other_lengths, a_tuple_and_a_node, other_keys, same_keys, returned_structures, read_by_nobody, numbers_become_nodes,
    arrays_of_branches, goes_on, items_by_variables, short_batches, taken_out_of_a_branch, raised_in_a_branch,
    functions_of_python, recursion, no_truth_value, condition_of_two, numbers_as_conditions, in_a_while,
)  # fmt: skip


def outcome(m, body):
    @m.pipeline_def(batch_size=4, num_threads=1, device_id=None, enable_conditionals=True)
    def result():
        x = m.fn.external_source(source=[[np.int32(i) for i in range(4)]] * 3, cycle=True)
        return body(m, x)

    try:
        pipe = result()
        pipe.build()
        return [[[np.asarray(v).tolist() for v in out] for out in pipe.run()] for _ in range(2)]
    except Exception as error:
        return next(kind for kind in (ValueError, TypeError, RuntimeError) if isinstance(error, kind))


@pytest.mark.drawn(1)
@pytest.mark.oracle
@pytest.mark.parametrize("body", BODIES, ids=lambda b: b.__name__)
def test_as_dali(body):
    pytest.importorskip("nvidia.dali")
    from nvidia.dali import fn, pipeline_def, types

    theirs = modules.SimpleNamespace(fn=fn, types=types, pipeline_def=pipeline_def)
    assert outcome(OURS, body) == outcome(theirs, body)


def pipe_of(body, **options):
    @ndd.pipeline_def(batch_size=4, enable_conditionals=True, **options)
    def result():
        return body(ndd.fn.external_source(source=[[np.int32(i) for i in range(4)]], cycle=True))

    return result()


def values(pipe):
    return [sample.item() for sample in pipe.run()[0].batch]


def test_either_value():
    def body(x):
        return x * 10 if x > 1 else x

    assert values(pipe_of(body)) == [0, 1, 20, 30]


def test_comparisons_in_a_row_of_plain_values():
    """Each operand is computed at most once, from the left, as Python does."""
    seen = []

    def body(x):
        def value(number):
            seen.append(number)
            return number

        result = [value(1) < value(2) < value(3) != value(4), value(5) < value(5) < value(6), 3 > 2 > 2, 1 < 2 in [2]]
        return x + sum(result)

    assert values(pipe_of(body, prefetch_queue_depth=1)) == [2, 3, 4, 5]
    assert seen[:6] == [1, 2, 3, 4, 5, 5]
    assert 6 not in seen


def test_random_operators_in_branches():
    def body(x):
        if x > 1:
            y = ndd.fn.random.uniform(range=[5, 6])
        else:
            y = ndd.fn.random.uniform(range=[1, 2])
        return y

    result = values(pipe_of(body, seed=3))
    assert [5 <= v <= 6 for v in result] == [False, False, True, True]


def test_what_cannot_be_says_what_to_do():
    def leaked(x):
        kept, keys = {}, ["x"]
        if x > 1:
            kept[keys[0]] = x * 2
        else:
            kept[keys[0]] = x
        return kept["x"]

    def one_return(x):
        if x > 1:
            return x

    def appended(x):
        kept = []
        if x > 1:
            kept.append(x * 2)
        return kept[0] + x

    def breaks(x):
        for _ in range(2):
            if x > 1:
                break
        return x

    def unassigned(x):
        if x > 1:
            z = x
        return z

    for body, said in (
        (leaked, r"stores into kept\[keys\[0\]\].*store that after"),
        (one_return, "gives None.*lack a `return`"),
        (appended, "Assign it to a variable"),
        (breaks, "not in loops that it breaks"),
        (unassigned, "not assigned in all branches"),
    ):
        with pytest.raises((RuntimeError, TypeError, ValueError), match=said):
            pipe_of(body).run()


def test_globals_closures_and_defaults(monkeypatch):
    factor = 3

    def body(x, more=100):
        if x > 1:
            return x * factor + more
        return x * GLOBAL

    monkeypatch.setitem(globals(), "GLOBAL", 7)
    pipe = pipe_of(body)
    assert values(pipe) == [0, 7, 106, 109]
    factor = 4
    monkeypatch.setitem(globals(), "GLOBAL", 8)
    assert values(pipe_of(body)) == [0, 8, 108, 112]


def test_a_traceback_names_the_function():
    def fails(x):
        if x > 1:
            raise ValueError("as written")
        return x

    with pytest.raises(ValueError, match="as written") as raised:
        pipe_of(fails).run()
    assert "fails" in {frame.name for frame in raised.traceback}


GLOBAL = 0
