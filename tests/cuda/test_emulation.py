"""The emulated GPU itself: the path is the real one, shared memory and shuffles work, stray writes are found."""

import sys
import types

import numpy as np
import pytest

import ndd
from ndd._operator import Plan, like


@pytest.fixture(autouse=True)
def _emulated(emulated_gpu):
    if emulated_gpu.real:
        pytest.skip("there is a GPU")


def declared(tmp_path, monkeypatch, text, name="probe", n_out=None):
    """An operator of one f32 vector with kernel text `text`."""
    module = types.ModuleType(f"probe_{tmp_path.name}")
    module.__file__ = str(tmp_path / "probe.py")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    (tmp_path / "probe.cu").write_text(text)

    def probe(x, /):
        return like(x)

    probe.__name__ = name
    probe.__module__ = module.__name__
    result = ndd.operator(probe, register=False)
    if n_out is not None:
        result.plan(lambda x: Plan(np.full((x.n, 1), n_out)))
    result.cuda("probe.cu")
    return result


HEAD = 'extern "C" __global__ void probe(const Sample* samples, int count, Shared shared) {'


def test_a_batch_is_one_launch(emulated_gpu):
    images = [np.arange(h * 5 * 3, dtype=np.uint8).reshape(h, 5, 3) for h in (1, 4, 300)]
    b = ndd.batch(images, layout="HWC").gpu()
    out = ndd.flip(b, horizontal=ndd.batch([1, 0, 1]))
    assert out.device == ndd.Device("gpu:0")
    result = out.cpu().evaluate()
    assert emulated_gpu.launches == ["flip"]
    for i, image in enumerate(images):
        np.testing.assert_array_equal(np.asarray(result.select(i)), image[:, ::-1] if i != 1 else image)


def test_threads_of_a_block_work_together(emulated_gpu, tmp_path, monkeypatch):
    text = (
        HEAD
        + """
      __shared__ float part[8];
      const Sample& s = samples[blockIdx.y];
      float sum = 0;
      for (long long i = threadIdx.x; i < s.in0_shape[0]; i += blockDim.x) sum += s.in0[i];
      for (int d = 16; d; d >>= 1) sum += __shfl_down_sync(~0u, sum, d);
      if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
      __syncthreads();
      if (threadIdx.x < 32) {
        sum = threadIdx.x < 8 ? part[threadIdx.x] : 0;
        for (int d = 4; d; d >>= 1) sum += __shfl_down_sync(~0u, sum, d);
        if (threadIdx.x == 0) s.out0[0] = sum;
      }
    }"""
    )
    total = declared(tmp_path, monkeypatch, text, n_out=1)
    x = ndd.batch([np.arange(1000, dtype=np.float32), np.ones(7, np.float32)]).gpu()
    assert [float(t.item()) for t in total(x)] == [499500.0, 7.0]


def test_an_endless_barrier_is_found(emulated_gpu, tmp_path, monkeypatch):
    text = HEAD + " if (threadIdx.x == 0) __syncthreads(); else __syncwarp(); if (threadIdx.x > 3) __syncthreads();}"
    stuck = declared(tmp_path, monkeypatch, text)
    with pytest.raises(RuntimeError, match="wait for one another"):
        stuck(ndd.tensor(np.zeros(4, np.float32)).gpu()).evaluate()


def test_writes_beside_the_output_are_found(emulated_gpu, tmp_path, monkeypatch):
    stray = declared(tmp_path, monkeypatch, HEAD + " samples[0].out0[samples[0].in0_shape[0]] = 1; }")
    with pytest.raises(AssertionError, match="outside its output"):
        stray(ndd.tensor(np.zeros(4, np.float32)).gpu()).evaluate()


def test_names_of_c_functions_may_be_kernels(emulated_gpu, tmp_path, monkeypatch):
    text = HEAD.replace("probe", "pow") + " samples[0].out0[threadIdx.x] = min(threadIdx.x, 2u) * 0.5f; }"
    pow_ = declared(tmp_path, monkeypatch, text.replace("{ samp", "{ if (threadIdx.x < 4) samp"), name="pow")
    assert pow_(ndd.tensor(np.zeros(4, np.float32)).gpu()).torch().tolist() == [0.0, 0.5, 1.0, 1.0]


def test_kernels_do_not_share_what_is_shared_in_a_function_of_one_name(emulated_gpu, tmp_path, monkeypatch):
    spot = "inline int& spot() { __shared__ int here; return here; }\n"
    writes = declared(tmp_path, monkeypatch, spot + HEAD + " spot() = 7; samples[0].out0[0] = spot(); }")
    assert writes(ndd.tensor(np.zeros(1, np.float32)).gpu()).torch().tolist() == [7.0]
    other = tmp_path / "other"
    other.mkdir()
    reads = declared(other, monkeypatch, spot + HEAD + " samples[0].out0[0] = spot(); }")
    assert reads(ndd.tensor(np.zeros(1, np.float32)).gpu()).torch().tolist() == [0.0]
