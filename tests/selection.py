"""Which tests run by default, and which with `--all` only."""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

# What `.ci/run` leaves to `.ci/run all`, for its time on two cores: each takes 3 to 50 seconds of one core, and what it tests
# is tested in a cheaper way too (other start methods, other formats, the kernel in a thread, the loop of a notebook).
LONG = (
    "test_slow_store.py::test_the_rate_of_a_plain_client",
    "test_bench.py::test_the_table_suits_dali",
    "test_recipes_on_gpu.py::test_as_on_the_cpu[segmentation]",
    "test_object_store.py::test_containers_and_their_indices",
    "test_compile.py::test_archives_of_a_wheel",
    "test_worker_processes.py::test_workers_that_are_started[forkserver]",
    "test_bench.py::test_soak[abandoned]",
    "test_forged_indexes.py::test_changed_indexes_are_built_anew[video]",
    "test_other_stores.py::test_readers",
    "test_ported_code.py::test_a_program_gives_what_it_gives_with_dali[volumes-]",
    "test_pictures.py::test_as_with_dali[warp_of_volumes]",
    "test_published.py::test_speech_is_the_logarithm_of_librosas_mel_bands",
    "test_notebooks.py::test_notebook_runs[from_torchvision]",
    "test_seeds.py::test_in_workers_of_a_data_loader[spawn-tensor]",
    "test_pages.py::test_code_runs_and_prints_what_it_says[cookbook/ddp.md]",
    "test_pages.py::test_code_runs_and_prints_what_it_says[cookbook/lightning.md]",
    "test_bench.py::test_first_call_from_an_empty_and_a_filled_cache",
    "test_bench.py::test_first_calls_of_the_table",
    "test_installation.py::test_wheel_and_sdist_hold_what_the_library_reads",
    "test_contexts.py::test_ten_thousand_iterations_in_flat_memory",
    "test_worker_processes.py::test_workers_of_a_data_loader[spawn-1]",
    "test_kernels.py::test_many_processes_ask_first",
    "test_crop_mirror_normalize.py::test_random_arguments_as_dali",
    "test_bench.py::test_import_time",
    "test_bench.py::test_speech",
    "test_bench.py::test_detection",
    "test_bench_mine.py::test_both_sides_of_the_command",
    "test_compile.py::test_programs_compile_nothing_after_it",
    "test_notebooks.py::test_notebook_runs[getting_started]",
    "test_flat_memory.py::test_a_kilobyte_that_is_left_behind_is_seen[1000]",
    "test_bench.py::test_augment",
    "test_compile.py::test_the_caches_are_filled",
    "test_memory.py::test_memory_pressure_is_not_damage[.jp2]",
    "test_memory.py::test_memory_pressure_is_not_damage[.tif]",
    "test_memory.py::test_memory_pressure_is_not_damage[.gif]",
    "test_read_ahead.py::test_the_interpreter_exits[os.fork",
    "test_demo.py::test_the_embedded_set_is_learnt",
    "test_old_names.py::test_the_oracle_warns_too",
    "test_portable.py::test_real_files[without simplejpeg]",
    "test_arithmetic_kernels.py::test_every_operation_compiles",
    "test_processes.py::test_forks_at_random_moments[0]",
    "test_processes.py::test_exit_with_work_queued[deferred]",
    "test_processes.py::test_exit_with_work_queued[sync_cpu]",
    "test_notebooks.py::test_notebook_runs[speech]",
    "test_notebooks.py::test_notebook_runs[classic_loops]",
    "test_crop_mirror_normalize.py::test_gpu_as_cpu[2]",
    "test_memory.py::test_memory_pressure_is_not_damage[.png]",
    "test_processes.py::test_what_the_handler_of_a_signal_raises_reaches_the_user[eager]",
    "test_proxy.py::test_other_start_methods[forkserver]",
    "test_notebooks.py::test_notebook_runs[detection]",
    "test_notebooks.py::test_notebook_runs[video]",
    "test_notebooks.py::test_notebook_runs[scale]",
    "test_notebooks.py::test_notebook_runs[segmentation]",
    "test_notebooks.py::test_notebook_runs[augmentation_gallery]",
    "test_elastic.py::test_killed_restarted_and_finished_by_fewer",
    "test_ray.py::test_workers_of_ray_train",
    "test_pages.py::test_code_runs_and_prints_what_it_says[cookbook/ray.md]",
    "test_worker_processes.py::test_workers_of_a_data_loader[forkserver-1]",
    "test_notebooks.py::test_notebook_runs[auto_aug]",
    "test_notebooks.py::test_notebook_runs[segmentation_augment]",
    "test_notebooks.py::test_notebook_runs[containers]",
    "test_external_source.py::test_processes_share_out_a_sequence",
    "test_coverage.py::test_lines_are_counted_of_every_operator",
    "test_crop_mirror_normalize.py::test_gpu_as_cpu[1]",
    "test_bench.py::test_loop",
    "test_bench.py::test_torchvision",
    "test_experimental_resize.py::test_as_resize[cpu-DALIInterpType.INTERP_LINEAR-DHWC]",
    "test_processes.py::test_control_c_in_the_loop[deferred]",
    "test_proxy.py::test_many_servers_leave_nothing",
    "test_read_ahead.py::test_the_interpreter_exits[raise SystemExit(3)]",
    "test_object_store.py::test_other_processes",
    "test_worker_processes.py::test_workers_that_are_started[spawn]",
    "test_torch_compile.py::test_whoever_comes_first[ndd, torch._dynamo]",
    "test_object_store.py::test_compressed_tfrecords",
    "test_object_store.py::test_what_others_could_have_written_is_not_taken_from_the_cache",
    "test_containers.py::test_the_checks_are_in_force",
    "test_pictures.py::test_lying_headers",
    "test_bench.py::test_the_table_suits_ndd",
    "test_bench.py::test_operators",
    "test_bench_classic.py::test_classic_loops",
    "test_detection.py::test_the_loop_of_ssd_on_a_gpu",
    "test_read_ahead.py::test_memory_is_flat",
    "test_body.py::test_memory_is_flat_over_fifty_epochs",
    "test_worker_processes.py::test_states_of_a_stateful_data_loader[partial",
    "test_worker_processes.py::test_states_of_a_stateful_data_loader[fill",
    "test_worker_processes.py::test_a_started_worker_is_of_its_parents_rank",
    "test_proxy.py::test_other_start_methods",
    "test_frameworks.py::test_lightning",
    "test_experimental_resize.py::test_nearest_along_one_axis_only[cpu]",
    "test_filter.py::test_what_stands_in_is_the_same_to_the_bit[float32",
    "test_worker_processes.py::test_states_of_a_stateful_data_loader[drop-True]",
    "test_user_code.py::test_errors_are_where_the_code_is_wrong",
    "test_container.py::test_its_command_runs_with_its_user_and_environment",
    "test_slow_store.py::test_processes_share_a_cache_with_a_limit",
    "test_slow_store.py::test_nothing_waits_for_what_the_index_has_said",
    "test_compile.py::test_processes_that_compile_see_no_gpu_and_the_end_of_one_is_a_sentence",
    "test_targets_forms.py::test_tv_tensors_come_beside_a_torch_whose_torchvision_does_not_load",
    "test_show.py::test_a_notebook_shows_once_and_folds",
    "test_worker_processes.py::test_the_place_of_the_reader_counts",
    "test_worker_processes.py::test_data_sets_of_the_users_own",
    "test_worker_processes.py::test_a_loop_that_was_left",
    "test_kernels.py::test_what_is_kept_is_loaded_without_the_compiler",
    "test_bench.py::test_both_sides_have_the_same_threads",
    "test_object_store.py::test_a_tree_of_classes",
    "test_ends_of_programs.py::test_an_end_is_not_held_up_for_long",
    "test_published.py::test_video_clips_is_torchvisions",
    "test_reference_errors.py::test_what_a_name_raises_is_in_its_entry",
    "test_pages.py::test_code_runs_and_prints_what_it_says[cookbook/accelerate.md]",
    "test_file_reading.py::test_a_store_may_be_closed_while_it_is_read",
    "test_nvrtc.py::test_a_kernel_that_is_two_operators_compiles",
    "test_compile_processes.py::test_a_program_with_an_empty_cache",
    "test_readme.py::test_the_first_block_runs_in_a_fresh_interpreter",
    "test_pages.py::test_code_runs_and_prints_what_it_says[cookbook/captions.md]",
    "test_crop_mirror_normalize.py::test_gpu_pixels_of_all_channels",
    "test_crop_mirror_normalize.py::test_bfloat16_is_float32_rounded",
    "test_ported_code.py::test_a_program_gives_what_it_gives_with_dali[grey_or_not-]",
    "test_recipes_on_gpu.py::test_a_recipe_is_worked_on_ahead_as_a_whole",
    "test_reductions.py::test_means_from_the_cpu_for_data_on_the_gpu",
    "test_parquet.py::test_a_shuffle_with_a_buffer_reads_each_row_group_once",
    "test_epochs.py::test_programs_of_resets_and_breaks_see_what_they_see_in_dali",
    "test_batches_in_one_call.py::test_large_arrays_of_mixed_types",
    "test_tfrecord.py::test_a_compressed_file_is_read_in_any_order",
    "test_threads.py::test_memory_is_flat",
    "test_spectrogram.py::test_ragged_batches_of_the_same_shapes_differ_in_their_values_only",
    "test_containers.py::test_the_validation_recipe_on_files",
    "test_files.py::test_as_with_dali[sound_decoding]",
    "test_containers_and_videos.py::test_as_with_dali[tfrecords]",
    "test_pictures.py::test_as_with_dali[transforms_of_volumes]",
    "test_preemphasis_filter.py::test_regions_of_integers_and_of_signals_that_are_shorter_than_a_window",
    "test_worker_processes.py::test_more_workers_than_batches",
    "test_warp_perspective.py::test_the_way_around_opencv_gives_the_same",
    "test_random_mask_pixel.py::test_the_foreground_at_the_ends_of_each_type[u8]",
    "test_random_mask_pixel.py::test_the_foreground_at_the_ends_of_each_type[f4]",
    "test_remap.py::test_numpy_answers_to_the_last_bit_while_the_kernel_is_compiled[float32]",
    "test_worker_processes.py::test_children_of_children_and_a_seed_set_there",
    "test_presets.py::test_video_classification",
    "test_recipes_on_gpu.py::test_no_call_waits_for_memory_that_is_shared",
    "test_first_steps.py::test_a_network_learns_behind_a_graph_of_nodes",
    "test_slow_store.py::test_as_many_requests_in_flight_as_connections",
    "test_published.py::test_dino_solarizes_a_fifth_of_the_second_windows",
    "test_registry.py::test_element_types[tensor_resize]",
    "test_normalize.py::test_gpu_reads_many_samples_once[axes",
    "test_compile.py::test_kernel_texts_are_those_of_larger_batches_too",
)
LONG_LIKE = re.compile(
    # Two readers of video share what the third does, and orders and shards are those of any reader.
    r"test_every_place_resumes\[options[12]-.*-(VideoResize|experimental\.Video)\]"
    # Images and volumes stay; the other layouts are these, with their axes joined.
    r"|test_experimental_resize.py::test_as_resize\[(cpu|gpu)-.*-(CHW|FHWC|FCHW|CFHW|CDHW)\]"
    # Loops that are left out share the log with those that stay, and orders are those of any reader.
    r"|test_worker_processes.py::test_the_loader_gives_what_it_gives_without_workers\[(fill|drop)-"
    r"|test_worker_processes.py::test_the_loader_gives_what_it_gives_without_workers"
    r"\[partial-(shuffle seed|shuffle_after_epoch|num_shards shard_id shuffle|num_shards stick_to_shard)\]"
    # Of containers read from afar, one with and one without a shuffle stay.
    r"|test_slow_store.py::test_the_rate_of_a_plain_client\[(MDS|Webdataset)-"
    # Warps of float32 are compiled for them alone; recipes and `test_resized_windows.py` have some, and of bytes all stay.
    r"|test_functional.py::test_images\[dtype1-(rotate|affine|perspective|elastic|resized_crop)-"
    # Kernels are built as C++ for each; of bytes they stay.
    r"|test_reductions.py::test_gpu_equals_cpu\[(i64|f32)-(mean|mean_square|rms|max|std_dev)\]"
)


everything = False  # `--all`


def is_long(nodeid: str) -> bool:
    """Whether a test is one of these."""
    file = nodeid.partition("::")[0].rpartition("/")[2]
    return any(name in nodeid for name in _long_of_files().get(file, ())) or LONG_LIKE.search(nodeid) is not None


@functools.cache
def _long_of_files() -> dict[str, list[str]]:
    """LONG by file: twenty thousand tests are looked up, in each process that runs some."""
    result: dict[str, list[str]] = {}
    for name in LONG:
        result.setdefault(name.partition("::")[0], []).append(name)
    return result


def drawn(values: Iterable[Any], count: int, *key: object) -> list[Any]:
    """The first of some values and others to make `count`, by a seed that is the key's; all of them with `--all`."""
    first, *others = values
    if not everything:
        others = random.Random(repr(key)).sample(others, min(count - 1, len(others)))
    return [first, *others]


_TYPES = re.compile(r"((u?int|b?float)\d+|[uif](1|2|4|8|16|32|64)|bf16|bool)")
_LAYOUT = re.compile(r"[CDFHW]{2,6}")
_USUAL = ("uint8", "u8", "u1", "float32", "f32", "f4")  # of bytes and float32 `ndd compile --all` has kernels
# A test with more items than so many, such as one for each operator, runs for some unless it is cheap.
_MANY, _SOME = 44, 6
_FOR_ALL = ("test_values", "test_against_the_oracle")  # each operator and each format is compared with DALI


def repeated(all_times: int, times: int) -> range:
    """For a loop over random cases: so many; `all_times` with `--all`."""
    return range(all_times if everything else times)


def drawn_types(types: Iterable[str], count: int, subject: str) -> list[str]:
    """So many element types: bytes and float32, then others by a seed that is the subject's; all of them with `--all`.

    Kernels are compiled for each type. All tests of a subject, which is an operator or the file of a test, take the same ones, and
    other subjects take others.
    """
    types = list(types)
    return types if everything else sorted(types, key=lambda name: _turn(name, subject))[:count]


def _turn(name: str, subject: str) -> float:
    """When an element type has its turn."""
    return -1.0 if name in _USUAL else random.Random(f"{subject} {name}").random()


def combinations(items: list[Any]) -> set[str]:
    """The node ids that run: of a test with several parameters, combinations in which each value of each parameter occurs.

    Of parameters that are element types bytes and float32 do, of tests with very many items some items, for other operators in
    each test, and of a test with the mark `drawn` so many: a test whose items take more than 0.03 s of one core each has as many
    as take 0.08 s, or 0.15 s if it compares with DALI (`_covering`). They are drawn by a seed that is the test's own.
    """
    tests: dict[str, list[Any]] = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    chosen = set()
    for name, its_items in tests.items():
        random.Random(name).shuffle(its_items)
        values = {item.nodeid: set(parameters(item)) for item in its_items}
        left_out = _types_left_out(
            set().union(*values.values()), Path(name.partition("::")[0]).stem.removeprefix("test_")
        )
        tried: set[tuple[str, Any]] = set()
        for item in sorted(its_items, key=lambda item: len(values[item.nodeid] & left_out)):
            own = values[item.nodeid]
            if own - left_out - tried or not own:
                chosen.add(item.nodeid)
                tried |= own
        mine = sorted(item.nodeid for item in its_items if item.nodeid in chosen)
        most = _most(its_items[0], name.rpartition("::")[2], len(mine))
        if len(mine) > most:
            chosen.difference_update(mine)
            chosen.update(_covering(random.Random(name).sample(mine, len(mine)), values, most))
    return chosen


def _covering(names: list[str], values: dict[str, set[tuple[str, Any]]], count: int) -> list[str]:
    """So many items: always the one with the most values, and axes of layouts, that those before it lack. Those of element types
    for which kernels may have to be compiled come last."""
    covering: list[str] = []
    lacking = {name: values[name] | _axes(values[name]) for name in names}
    while lacking and len(covering) < count:
        best = max(lacking, key=lambda name: (-_unusual(values[name]), len(lacking[name])))
        covered = lacking.pop(best)
        covering.append(best)
        lacking = {name: left - covered for name, left in lacking.items()}
    return covering


def _axes(values: set[tuple[str, Any]]) -> set[tuple[str, Any]]:
    """The letters of layouts: a volume's depth and a video's frames have code of their own."""
    return {(name, axis) for name, v in values if isinstance(v, str) and _LAYOUT.fullmatch(v) for axis in v}


def _unusual(values: set[tuple[str, Any]]) -> int:
    """How many of these parameters are other element types than bytes and float32."""
    return sum(isinstance(v, str) and v not in _USUAL and _TYPES.fullmatch(v) is not None for _, v in values)


class Planned(NamedTuple):
    """A test that may be made, with what `combinations` asks of one."""

    nodeid: str
    callspec: Any
    marks: dict[str, Any]

    def get_closest_marker(self, name: str) -> Any:
        return self.marks.get(name)


def planned(metafunc: Any) -> list[Planned]:
    """What pytest would make of a function, one for each combination of parameters, but for what is long."""
    name, own = (
        metafunc.definition.nodeid,
        {mark.name: mark for mark in reversed([*metafunc.definition.iter_markers()])},
    )
    every = [Planned(f"{name}[{c.id}]", c, own | {mark.name: mark for mark in c.marks}) for c in metafunc._calls]
    return [test for test in every if "long" not in test.marks and not is_long(test.nodeid)]


def _types_left_out(values: set[tuple[str, Any]], subject: str) -> set[tuple[str, Any]]:
    """Parameters that are element types, with those values that need not be tried: others than bytes and float32, or than one
    where the test has neither. Kernels are compiled for each. Walks inside tests try others (`drawn_types`)."""
    left_out = set()
    for parameter in {name for name, _ in values}:
        types = sorted(v for name, v in values if name == parameter and isinstance(v, str) and _TYPES.fullmatch(v))
        tried = [v for v in types if v in _USUAL] or drawn_types(types, 1, subject)
        left_out |= {(parameter, v) for v in set(types).difference(tried)}
    return left_out


def _most(item: Any, test: str, count: int) -> int:
    """How many of the `count` items of a test may run, of which this is one."""
    if marked := item.get_closest_marker("drawn"):
        return marked.args[0]
    if count <= _MANY or test in _FOR_ALL or _is_cheap(item):
        return count
    return _SOME


def _is_cheap(item: Any) -> bool:
    """Whether a test computes nothing, such as those of names, documentation and layers."""
    return item.get_closest_marker("fast") is not None and item.get_closest_marker("sweep") is None


_PLAIN = (str, int, float, type(None))  # a union of them is slower


def _is_plain(value: Any) -> bool:
    """Whether a value is short as text: arrays and tensors are not, nor what holds them."""
    if isinstance(value, (tuple, list)):
        return all(map(_is_plain, value))
    return all(map(_is_plain, value.values())) if isinstance(value, dict) else isinstance(value, _PLAIN)


def parameters(item: Any) -> Iterator[tuple[str, Any]]:
    """Names of parameters, each with its value where that is plain, else with its place in the list of values."""
    if hasattr(item, "callspec"):
        for name, value in item.callspec.params.items():
            if isinstance(value, type) and issubclass(value, np.generic):
                value = np.dtype(value).name
            elif "dtype" in type(value).__name__.lower():  # NumPy's, torch's, ndd's
                value = str(value).rpartition(".")[2]
            yield name, str(value) if _is_plain(value) else item.callspec.indices[name]
