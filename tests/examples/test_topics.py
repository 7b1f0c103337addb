"""DALI's example notebooks by topic, and the test of ours that does the same in a loop, in our words.

Paths are those below `docs/examples`. Notebooks for JAX, TensorFlow, MXNet and PaddlePaddle, and the one that writes an operator in
C++, have no loop in torch.
"""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
# With a notebook for dynamic mode (a few of them under the names of older versions).
DYNAMIC = {
    "audio_processing/audio_decoder": "examples/test_files.py: sound_decoding",
    "audio_processing/spectrogram": "examples/test_files.py: spectrograms",
    "dynamic_mode/augmentation_gallery": "examples/test_pictures.py: augmentation_gallery",
    "frameworks/pytorch_dynamic/pytorch_training": "examples/test_first_steps.py: test_a_network_learns_behind_a_graph_of_nodes",
    "general/data_loading/coco_reader": "examples/test_files.py: coco",
    "general/data_loading/numpy_reader": "examples/test_files.py: arrays_and_their_regions",
    "general/data_loading/recordio_reader": "examples/test_containers_and_videos.py: recordio",
    "general/data_loading/tfrecord_reader": "examples/test_containers_and_videos.py: tfrecords",
    "general/data_loading/webdataset_reader": "examples/test_files.py: webdataset",
    "getting_started/torchvision_api": "torchvision/test_transforms_of_batches.py: test_",
    "image_processing/brightness_contrast": "examples/test_pictures.py: brightness_contrast",
    "image_processing/color_space_conversion": "examples/test_pictures.py: color_space_conversion",
    "image_processing/hsv": "examples/test_pictures.py: hsv",
    "image_processing/resize": "examples/test_pictures.py: resize",
    "image_processing/warp_dynamic": "examples/test_pictures.py: warp_of_images",
    "sequence_processing/optical_flow": "examples/test_containers_and_videos.py: test_flow_says_where_pixels_were",
    "sequence_processing/video/video_file_list_outputs": (
        "examples/test_containers_and_videos.py: test_a_list_names_parts_and_outputs_tell_their_place"
    ),
    "sequence_processing/video/video_reader_label": (
        "examples/test_containers_and_videos.py: test_labels_of_clips_are_their_folders"
    ),
    "sequence_processing/video/video_reader_simple": "examples/test_containers_and_videos.py: test_clips_of_a_video",
}
# For pipelines: what a loop does in their place, or the same pipeline run by ndd.
OTHERS = {
    "advanced/pipeline_checkpointing": "examples/test_first_steps.py: test_a_pipeline_goes_on_from_a_checkpoint",
    "advanced/serialization": "pipeline/test_definition.py: test_",
    "custom_operations/gpu_python_operator": "examples/test_pictures.py: a_function_of_ones_own",
    "custom_operations/numba_function": "examples/test_first_steps.py: test_a_turn_by_numba_in_a_pipeline",
    "custom_operations/python_operator": "examples/test_pictures.py: a_function_of_ones_own",
    "frameworks/pytorch/pytorch-basic_example": "plugin/test_examples.py: test_video_like_generic_iterator",
    "frameworks/pytorch/pytorch-external_input": "examples/test_files.py: external_input",
    "frameworks/pytorch/pytorch-lightning": "../notebooks/cookbook/lightning.md: class",
    "frameworks/pytorch/pytorch-various-readers": "examples/test_containers_and_videos.py: lmdb_of_caffe2",
    "frameworks/pytorch/loader_evaluator": "plugin/test_loader_evaluator.py: test_waiting_is_what_replay_saves",
    "general/conditionals": "examples/test_pictures.py: conditions",
    "general/conditionals-autoaugment": "auto_aug/test_schemes.py: test_a_pipeline_written_for_dali",
    "general/conv_perf": "examples/test_containers_and_videos.py: kernels_of_filters",
    "general/data_loading/dataloading_lmdb": "examples/test_containers_and_videos.py: lmdb_of_caffe",
    "general/data_loading/external_input": "examples/test_files.py: external_input",
    "general/data_loading/parallel_external_source": "examples/test_first_steps.py: test_a_source_in_workers_gives_the_same",
    "general/data_loading/parallel_external_source_fork": "examples/test_first_steps.py: test_a_source_in_workers_gives_the_same",
    "general/debug_mode": "pipeline/test_as_written_for_dali.py: debug",
    "general/erase": "examples/test_pictures.py: erase",
    "general/expressions/expr_blend_image": "examples/test_pictures.py: blending_by_expressions",
    "general/expressions/expr_conditional_and_masking": "examples/test_pictures.py: masks_by_comparison",
    "general/expressions/expr_examples": "examples/test_pictures.py: types_of_expressions",
    "general/expressions/expr_type_promotions": "examples/test_pictures.py: types_of_expressions",
    "general/multigpu": "examples/test_files.py: parts_for_several_gpus",
    "general/normalize": "examples/test_pictures.py: normalize",
    "general/reductions": "examples/test_pictures.py: reductions",
    "general/reinterpret": "examples/test_pictures.py: reinterpretation",
    "general/tensor_join": "examples/test_pictures.py: joining_tensors",
    "image_processing/3d_transforms": "examples/test_pictures.py: transforms_of_volumes",
    "image_processing/clahe_example": "examples/test_pictures.py: clahe",
    "image_processing/interp_types": "examples/test_pictures.py: interpolation_types",
    "image_processing/multiple_crops": "examples/test_pictures.py: several_crops_of_an_image",
    "image_processing/warp_3D": "examples/test_pictures.py: warp_of_volumes",
    "math/geometric_transforms": "examples/test_pictures.py: geometric_transforms_of_points",
    "use_cases/detection_pipeline": "examples/test_files.py: detection",
    "use_cases/video_superres": "examples/test_containers_and_videos.py: test_frames_go_through_the_operators_of_images",
    "use_cases/webdataset-externalsource": "examples/test_containers_and_videos.py: pairs_in_a_tar",
}


@pytest.mark.parametrize("topic", DYNAMIC | OTHERS)
def test_a_test_does_the_same(topic):
    file, _, name = (DYNAMIC | OTHERS)[topic].partition(": ")
    text = (TESTS / file).read_text(encoding="utf-8")
    assert name in text if name in ("class", "debug") else f"def {name}" in text
