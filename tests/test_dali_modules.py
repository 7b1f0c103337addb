"""Modules that code for DALI imports: they work, or an import says what to do instead."""

from __future__ import annotations

import importlib
import sys

import pytest

import ndd

pytestmark = pytest.mark.fast


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("backend_impl", "ndd.backend"),
        ("reducers", "py_callback_pickler"),
        ("sysconfig", "@ndd.operator"),
        ("python_function_plugin", "dl_tensor_python_function"),
        ("plugin.triton", "Python backend"),
        ("plugin.tf", "dlpack"),
        ("plugin.jax", "dlpack"),
        ("plugin.paddle", "dlpack"),
    ],
)
def test_what_is_not_there_says_what_to_do(name, instead):
    home, _, last = f"ndd.{name}".rpartition(".")
    for statement in (f"import ndd.{name}", f"from {home} import {last}", f"from ndd.{name} import thing"):
        with pytest.raises(ImportError, match=f"ndd has no '{name}'.*{instead}"):
            exec(statement)
    assert not hasattr(importlib.import_module(home), last)
    assert f"ndd.{name}" not in sys.modules


def test_other_names_are_not_there_as_ever():
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'ndd\.nothing'"):
        importlib.import_module("ndd.nothing")
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        exec("from ndd import nothing")


def test_a_marked_source():
    from ndd.pickling import pickle_by_value

    @pickle_by_value
    def source():
        return [1, 2]

    pipe = ndd.pipeline_def(lambda: ndd.fn.external_source(source, parallel=True))(batch_size=2)
    assert pipe.run()[0].as_array().tolist() == [1, 2]
    with pytest.raises(TypeError, match="expected a function"):
        pickle_by_value(3)


def test_libraries_of_dali(tmp_path):
    from ndd import plugin_manager

    with pytest.raises(RuntimeError, match=r"'libcustom\.so'.*@ndd\.operator"):
        plugin_manager.load_library("libcustom.so")
    plugin_manager.load_directory(str(tmp_path))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "libdali_mine.so").touch()
    with pytest.raises(RuntimeError, match=r"libdali_mine\.so"):
        plugin_manager.load_directory(str(tmp_path), global_symbols=True)
