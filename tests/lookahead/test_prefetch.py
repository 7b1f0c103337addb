"""Lookahead changes when work is done, never what comes out."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import torch
from PIL import Image
from waiting import let_read_on

import ndd
from ndd._lookahead import decision, matching, prefetch, threads
from ndd._operator import fusion
from ndd.decoders.jpeg import backend as _jpeg
from ndd.readers.epochs.batch_maker import BatchMaker


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for i in range(12):
        Image.fromarray(rng.integers(0, 255, (20 + i, 30, 3), np.uint8)).save(tmp_path / f"{i:02}.png")
    return sorted(map(str, tmp_path.iterdir()))


def started(monkeypatch):
    """A list that gets an entry for each batch that is worked on ahead."""
    counts = []
    real = prefetch.expected_calls

    def result(*arguments):
        counts.append(1)
        return real(*arguments)

    monkeypatch.setattr(prefetch, "expected_calls", result)
    return counts


def epoch(reader, images=ndd.decoders.image):
    result = []
    for encoded, _ in reader.next_epoch(batch_size=4):
        result.append(ndd.resize(images(encoded, device="gpu"), size=[8, 8]).torch().clone())
        let_read_on(reader)
    return torch.cat(result)


def test_a_repeating_loop_is_worked_on_ahead_with_the_same_values(folder, emulated_gpu, monkeypatch):
    counts = started(monkeypatch)
    result = [epoch(ndd.readers.File(files=folder)), epoch(ndd.readers.File(files=folder))]
    assert sum(counts) >= 2
    monkeypatch.setenv("NDD_LOOKAHEAD", "0")
    before = len(counts)
    plain = epoch(ndd.readers.File(files=folder))
    assert len(counts) == before
    assert all(torch.equal(a, plain) for a in result)


def test_a_matrix_that_is_an_array_is_no_other_one_each_time(folder, monkeypatch):
    """Made anew for each batch, with the same numbers: what follows it is worked on ahead as well."""
    expected = []
    real = prefetch.expected_calls

    def result(loop, *others):
        expected.append([call.op.name for call in loop.expected])
        return real(loop, *others)

    monkeypatch.setattr(prefetch, "expected_calls", result)
    reader = ndd.readers.File(files=folder * 2)
    for encoded, _ in reader.next_epoch(batch_size=4, capture=True):
        turned = ndd.warp_affine(ndd.decoders.image(encoded), matrix=np.array([[1, 0, 1], [0, 1, 2]]), size=[8, 8])
        ndd.flip(turned).torch()
        let_read_on(reader)
    assert expected[-1] == ["image", "warp_affine", "flip"]


def test_a_captured_loop_is_worked_on_ahead_on_the_cpu_too(folder, monkeypatch):
    counts = started(monkeypatch)
    with open(folder[5], "wb") as file:
        file.write(b"not a picture")

    def loop(capture):
        reader, rng, result = ndd.readers.File(files=folder, random_shuffle=True, seed=4), ndd.random.RNG(seed=1), []
        for epoch in range(3):
            for i, (encoded, labels) in enumerate(reader.next_epoch(4, capture=capture)):
                images = ndd.random_resized_crop(ndd.decoders.image(encoded), size=[8, 8], rng=rng)
                if epoch == 1 and i == 1:  # once it does something else
                    images = ndd.flip(images)
                try:
                    result.append(images.torch().tolist())
                except RuntimeError as error:
                    result.append("05.png" in str(error))
                result.append((labels.torch().tolist(), str(rng.state), reader.state_dict()))
                let_read_on(reader)
        return result

    eager = loop(False)
    assert not counts
    assert eager.count(True) == 3  # the broken file, once in each epoch
    assert loop(True) == eager
    assert sum(counts) > 4


def test_a_captured_loop_that_decodes_windows_gives_whole_pictures_to_who_asks(tmp_path, monkeypatch):
    for i in range(12):
        shades = np.linspace(0, 255, (90 + i) * 120 * 3).reshape(90 + i, 120, 3).astype(np.uint8)
        Image.fromarray(shades).save(tmp_path / f"{i:02}.jpg")
    files, partial = sorted(map(str, tmp_path.iterdir())), []
    real = fusion.window
    monkeypatch.setattr(_jpeg, "host_empty", lambda shape, kind: np.full(shape, 77, kind))  # of no use to anybody
    monkeypatch.setattr(fusion, "window", lambda call, shapes: partial.append(real(call, shapes)) or partial[-1])

    def loop(capture):
        reader, rng, result = ndd.readers.File(files=files), ndd.random.RNG(seed=1), []
        for epoch in range(3):
            for i, (encoded, _) in enumerate(reader.next_epoch(4, capture=capture)):
                images = ndd.decoders.image(encoded)
                cropped = ndd.random_resized_crop(images, size=[8, 8], rng=rng)
                if epoch < 2 or i < 2:
                    del images
                result.append(cropped.torch().tolist())
                if epoch == 2 and i == 2:
                    result.append([np.asarray(image).tolist() for image in images])
                let_read_on(reader)
        return result

    expected = loop(False)
    partial.clear()
    assert loop(True) == expected
    assert any(part is not None for part in partial)  # windows, also where the work is done ahead


def test_a_loop_that_changes_its_mind_gets_what_it_asks_for(folder, emulated_gpu):
    reader = ndd.readers.File(files=folder)
    kinds = [ndd.types.RGB, ndd.types.RGB, ndd.types.GRAY]
    for (encoded, _), kind in zip(reader.next_epoch(batch_size=4), kinds, strict=True):
        images = ndd.decoders.image(encoded, device="gpu", output_type=kind)
        assert {s[2] for s in images.shape} == {1 if kind == ndd.types.GRAY else 3}
        let_read_on(reader)


def test_a_bad_file_is_an_error_of_its_own_batch(folder, emulated_gpu):
    with open(folder[9], "wb") as file:
        file.write(b"not a picture")
    reader = ndd.readers.File(files=folder)
    outcomes = []
    for encoded, _ in reader.next_epoch(batch_size=4):
        try:
            outcomes.append(len(ndd.decoders.image(encoded, device="gpu").shape))
        except RuntimeError as error:
            outcomes.append("09.png" in str(error))
        let_read_on(reader)
    assert outcomes == [4, 4, True]


def test_break_and_reset_leave_nothing_stale(folder, emulated_gpu):
    reader = ndd.readers.File(files=folder)
    for k, (encoded, _) in enumerate(reader.next_epoch(batch_size=4)):
        ndd.decoders.image(encoded, device="gpu").evaluate()
        let_read_on(reader)
        if k == 1:
            break
    reader.reset()
    again = epoch(reader)
    assert torch.equal(again, epoch(ndd.readers.File(files=folder)))


@pytest.mark.parametrize("at_once", [1, 2])
@pytest.mark.drawn(1)
def test_so_many_batches_are_under_way_while_one_is_used(folder, emulated_gpu, monkeypatch, at_once):
    """What reading and decoding are ahead of the loop: `DEPTH` times what is worked on as one, no more."""
    monkeypatch.setattr(decision, "_MAX_BATCHES", at_once)
    monkeypatch.setattr(decision, "_MAX_SECONDS", 1e9)
    distances = []
    real = BatchMaker.peeked_store

    def store(self, place, distance, generation):
        result = real(self, place, distance, generation)
        distances.append((distance, result is not None))
        return result

    monkeypatch.setattr(BatchMaker, "peeked_store", store)
    reader = ndd.readers.File(files=folder * 3)
    epoch(reader)
    assert (2, True) in distances
    assert max(d for d, _ in distances) == threads.DEPTH * at_once


def test_a_lookahead_leaves_nothing_behind(folder, emulated_gpu):
    """The values made ahead are those that the loop is given, and are not kept."""
    reader = ndd.readers.File(files=folder * 3)
    epoch(reader)
    assert len(reader._session.peeked._values) <= threads.DEPTH * decision._MAX_BATCHES
    reader.reset()
    epoch(reader)
    assert len(reader._session.peeked._values) <= threads.DEPTH * decision._MAX_BATCHES


MEAN, STD = [100.0, 110.0, 120.0], [50.0, 60.0, 70.0]


def augmented(reader, draw=lambda k: None, looked_at=lambda k, images: None, **loop):
    """The batches of the usual training loop; `draw(k)` may draw numbers meanwhile, `looked_at` ask for what lies between."""
    ndd.random.set_seed(11)
    result = []
    for k, (encoded, _) in enumerate(reader.next_epoch(batch_size=2, **loop)):
        images = ndd.random_resized_crop(ndd.decoders.image(encoded, device="gpu"), size=[8, 8])
        mirror = ndd.random.coin_flip(batch_size=images.batch_size)
        out = ndd.crop_mirror_normalize(images, mean=MEAN, std=STD, mirror=mirror)
        draw(k)
        result.append(out.torch().clone())
        looked_at(k, images)
        del images, out
        let_read_on(reader)
    return torch.cat(result)


def plain(monkeypatch, *arguments, **more):
    with monkeypatch.context() as changed:
        changed.setenv("NDD_LOOKAHEAD", "0")
        return augmented(*arguments, **more)


@pytest.mark.parametrize("capture", [False, True])
@pytest.mark.drawn(1)
def test_the_whole_body_of_a_loop_is_done_ahead_by_one_kernel(folder, emulated_gpu, monkeypatch, capture):
    loop = {"capture": True} if capture else {}
    expected = plain(monkeypatch, ndd.readers.File(files=folder * 2), **loop)
    calls = []
    real = matching._TakePrefetched.__call__
    monkeypatch.setattr(
        matching._TakePrefetched, "__call__", lambda self, i: calls.append(self.call.op.name) or real(self, i)
    )
    before = len(emulated_gpu.launches)
    assert torch.equal(augmented(ndd.readers.File(files=folder * 2), **loop), expected)
    assert calls[-1] == "crop_mirror_normalize"  # the last batches: nothing else is asked for
    assert calls.count("crop_mirror_normalize") >= 2
    launches = emulated_gpu.launches[before:]
    assert launches.count("crop_mirror_normalize") < launches.count("resample_plane")


def test_numbers_drawn_by_somebody_else_are_not_drawn_again(folder, emulated_gpu, monkeypatch):
    def draw(k):
        if k == 3:
            ndd.random.uniform(batch_size=1)

    expected = plain(monkeypatch, ndd.readers.File(files=folder), draw=draw)
    assert torch.equal(augmented(ndd.readers.File(files=folder), draw=draw), expected)
    assert not torch.equal(augmented(ndd.readers.File(files=folder)), expected)


def test_what_lies_between_is_there_for_who_asks(folder, emulated_gpu, monkeypatch):
    seen = {True: [], False: []}

    def looked_at(ahead):
        return lambda k, images: seen[ahead].append(images.torch().clone()) if k in (1, 4, 5) else None

    expected = plain(monkeypatch, ndd.readers.File(files=folder), looked_at=looked_at(False))
    result = augmented(ndd.readers.File(files=folder), looked_at=looked_at(True))
    assert torch.equal(result, expected)
    assert torch.equal(torch.cat(seen[True]), torch.cat(seen[False]))


def test_operators_of_the_user_are_not_called_ahead(folder, emulated_gpu):
    seen = []

    @ndd.operator(register=False)
    def look(image, /):
        """What a user's operator sees."""
        return ndd.like(image)

    @look.batch
    def _(call, image):
        seen.append(call.sources[0])
        return image.arrays

    @look.cuda
    def _(launch, image):
        seen.append(launch.call.sources[0])
        return image.arrays

    reader = ndd.readers.File(files=folder)
    for encoded, _ in reader.next_epoch(batch_size=2):
        look(ndd.decoders.image(encoded, device="gpu")).evaluate()
        let_read_on(reader)
    assert seen == folder[::2]


def test_files_are_written_when_the_loop_says_so(folder, emulated_gpu, monkeypatch):
    import importlib

    written = []
    monkeypatch.setattr(importlib.import_module("ndd.ops.image.dump_image"), "_write", lambda *a: written.append(a[0]))
    reader = ndd.readers.File(files=folder)
    for k, (encoded, _) in enumerate(reader.next_epoch(batch_size=2)):
        ndd.dump_image(ndd.decoders.image(encoded, device="gpu"), suffix="x")
        ndd.EvalContext.current().evaluate_all()
        assert len(written) == 2 * (k + 1)
        let_read_on(reader)


def test_a_batch_that_is_dropped_lets_what_was_made_of_it_go(folder, emulated_gpu):
    reader = ndd.readers.File(files=folder)
    for k, (encoded, _) in enumerate(reader.next_epoch(batch_size=2)):
        ndd.resize(ndd.decoders.image(encoded, device="gpu"), size=[8, 8]).evaluate()
        let_read_on(reader)
        if k == 2:
            break
    result = [values[0]._value() for _, values in reader._session.peeked._values]
    assert any(store.iteration is not None for store in result)
    for store in result:
        if store.iteration is not None and store.iteration.future is not None:
            store.iteration.future.result()
    alive = [weakref.ref(store) for store in result]
    del result, store
    reader.reset()
    assert [reference() for reference in alive] == [None] * len(alive)


@pytest.mark.parametrize("at_once", [1, 2])
@pytest.mark.drawn(1)
def test_what_the_loop_has_done_with_goes_without_the_garbage_collector(folder, emulated_gpu, monkeypatch, at_once):
    """Beside a network of torch it hardly ever runs: 33 batches of 256 images, 10 GiB, were alive."""
    monkeypatch.setattr(decision, "_MAX_BATCHES", at_once)
    monkeypatch.setattr(decision, "_MAX_SECONDS", 1e9)
    alive = weakref.WeakSet()
    real = prefetch.PrefetchedCall.__init__

    class Watched(prefetch.PrefetchedCall):
        __slots__ = ("__weakref__",)

        def __init__(self, *arguments):
            real(self, *arguments)
            alive.add(self)

    monkeypatch.setattr(prefetch, "PrefetchedCall", Watched)
    gc.collect()
    gc.disable()
    try:
        reader = ndd.readers.File(files=folder * 6)
        most = 0
        for encoded, _ in reader.next_epoch(batch_size=4):
            ndd.resize(ndd.decoders.image(encoded, device="gpu"), size=[8, 8]).torch()
            let_read_on(reader)
            most = max(most, len(alive))
    finally:
        gc.enable()
    assert 0 < most <= 2 * (threads.DEPTH + 2)  # two calls an iteration
