"""The calls of `bench ops`: one line for each operator, the same call for both libraries.

`m` is ndd or DALI's dynamic mode, `x` are the inputs of `ndd.bench.operator_inputs` on the measured device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_MEAN, _STD = [123.7, 116.3, 103.5], [58.4, 57.1, 57.4]
_AFFINE = [[1.1, 0.2, -10.0], [-0.1, 0.9, 20.0]]
_PERSPECTIVE = [[1.1, 0.2, -10.0], [-0.1, 0.9, 20.0], [1e-4, 2e-4, 1.0]]

# fmt: off
TABLE: dict[str, Callable[[Any, Any], Any]] = {
    # decode
    "decoders.image": lambda m, x: m.decoders.image(x.jpegs, device=x.device),
    "decoders.image_crop": lambda m, x: m.decoders.image_crop(x.jpegs, device=x.device, crop=[120, 120]),
    "decoders.image_random_crop": lambda m, x: m.decoders.image_random_crop(x.jpegs, device=x.device),
    "decoders.image_slice": lambda m, x: m.decoders.image_slice(x.jpegs, [0.1, 0.1], [0.5, 0.5], device=x.device),
    "decoders.audio": lambda m, x: m.decoders.audio(x.wavs),
    "decoders.audio flac": lambda m, x: m.decoders.audio(x.flacs),
    "decoders.audio ogg to 8 kHz": lambda m, x: m.decoders.audio(x.oggs, sample_rate=8000.0, downmix=True),
    "decoders.numpy": lambda m, x: m.decoders.numpy(x.npys),
    "peek_image_shape": lambda m, x: m.peek_image_shape(x.jpegs),
    # size and place
    "resize 224": lambda m, x: m.resize(x.images, size=[224, 224]),
    "resize 224 cubic": lambda m, x: m.resize(x.images, size=[224, 224], interp_type=x.types.INTERP_CUBIC),
    "resize 224 lanczos3": lambda m, x: m.resize(x.images, size=[224, 224], interp_type=x.types.INTERP_LANCZOS3),
    "resize 224 nearest": lambda m, x: m.resize(x.images, size=[224, 224], interp_type=x.types.INTERP_NN),
    "resize_crop_mirror": lambda m, x: m.resize_crop_mirror(x.images, resize_shorter=256.0, crop=[224, 224], mirror=1),
    "random_resized_crop 224": lambda m, x: m.random_resized_crop(x.images, size=[224, 224]),
    "tensor_resize": lambda m, x: m.tensor_resize(x.small, sizes=[112.0, 112.0], axes=[0, 1]),
    "crop": lambda m, x: m.crop(x.images, crop=[120, 120]),
    "crop_mirror_normalize": lambda m, x: m.crop_mirror_normalize(x.small, mean=_MEAN, std=_STD, mirror=1),
    "flip": lambda m, x: m.flip(x.images, horizontal=1),
    "slice": lambda m, x: m.slice(x.images, [0.1, 0.1], [0.7, 0.7]),
    "rotate": lambda m, x: m.rotate(x.images, angle=30.0, fill_value=0.0),
    "warp_affine 224": lambda m, x: m.warp_affine(x.images, matrix=_AFFINE, size=[224.0, 224.0], fill_value=0.0),
    "experimental.warp_perspective": lambda m, x: m.experimental.warp_perspective(x.small, matrix=_PERSPECTIVE),
    "experimental.remap": lambda m, x: m.experimental.remap(x.small, x.map_x, x.map_y),
    "transpose": lambda m, x: m.transpose(x.small, perm=[2, 0, 1]),
    "pad": lambda m, x: m.pad(x.images, axis_names="HW", align=[64, 64]),
    "paste": lambda m, x: m.paste(x.small, fill_value=[0, 0, 0], ratio=1.5),
    "multi_paste": lambda m, x: m.multi_paste(x.small, in_ids=[0, 1], output_size=[256, 256]),
    "sphere": lambda m, x: m.sphere(x.small),
    "water": lambda m, x: m.water(x.small),
    "jitter": lambda m, x: m.jitter(x.small),
    # colour
    "color_twist": lambda m, x: m.color_twist(x.images, brightness=1.1, contrast=0.9, hue=20.0, saturation=1.2),
    "brightness_contrast": lambda m, x: m.brightness_contrast(x.images, brightness=1.1, contrast=0.9),
    "brightness": lambda m, x: m.brightness(x.images, brightness=1.1),
    "contrast": lambda m, x: m.contrast(x.images, contrast=0.9),
    "hsv 224": lambda m, x: m.hsv(x.small, hue=20.0, saturation=1.2, value=0.9),
    "hue 224": lambda m, x: m.hue(x.small, hue=20.0),
    "saturation 224": lambda m, x: m.saturation(x.small, saturation=1.2),
    "color_space_conversion": lambda m, x: m.color_space_conversion(
        x.images, image_type=x.types.RGB, output_type=x.types.YCbCr),
    "equalize": lambda m, x: m.equalize(x.small),
    "clahe": lambda m, x: m.clahe(x.small, tiles_x=8, tiles_y=8, clip_limit=2.0),
    "lookup_table": lambda m, x: m.lookup_table(x.small, keys=[0, 1, 2], values=[3.0, 4.0, 5.0]),
    "debayer": lambda m, x: m.debayer(x.mosaic, blue_position=[0, 0], algorithm=x.debayer),
    "jpeg_compression_distortion": lambda m, x: m.jpeg_compression_distortion(x.small, quality=50),
    # filters and holes
    "gaussian_blur 224": lambda m, x: m.gaussian_blur(x.small, sigma=1.5),
    "laplacian": lambda m, x: m.laplacian(x.small, window_size=3),
    "filter": lambda m, x: m.filter(x.small, x.kernel, dtype=m.float32),
    "experimental.median_blur": lambda m, x: m.experimental.median_blur(x.small),
    "experimental.dilate": lambda m, x: m.experimental.dilate(x.small),
    "experimental.erode": lambda m, x: m.experimental.erode(x.small),
    "erase": lambda m, x: m.erase(x.small, anchor=[20.0, 30.0], shape=[60.0, 50.0], axis_names="HW"),
    "grid_mask": lambda m, x: m.grid_mask(x.small, tile=40),
    "noise.gaussian": lambda m, x: m.noise.gaussian(x.small, stddev=20.0),
    "noise.salt_and_pepper": lambda m, x: m.noise.salt_and_pepper(x.small, prob=0.1),
    "noise.shot": lambda m, x: m.noise.shot(x.small, factor=20.0),
    # values
    "cast f32": lambda m, x: m.cast(x.images, dtype=m.float32),
    "cast_like": lambda m, x: m.cast_like(x.small, x.floats),
    "copy": lambda m, x: m.copy(x.images),
    "x * 0.5 + 3": lambda m, x: x.images * 0.5 + 3,
    "math.sqrt": lambda m, x: m.math.sqrt(x.floats),
    "normalize": lambda m, x: m.normalize(x.small, axes=[0, 1]),
    "normalize rows": lambda m, x: m.normalize(x.mel, axes=[1]),
    "one_hot": lambda m, x: m.one_hot(x.classes, num_classes=1000),
    "stack": lambda m, x: m.stack(x.small, x.small),
    "cat": lambda m, x: m.cat(x.small, x.small, axis=2),
    "reshape": lambda m, x: m.reshape(x.small, shape=[-1]),
    "reinterpret": lambda m, x: m.reinterpret(x.floats, dtype=m.uint8),
    "expand_dims": lambda m, x: m.expand_dims(x.small, axes=[0], new_axis_names="F"),
    "squeeze": lambda m, x: m.squeeze(x.classes, axes=[0]),
    "permute_batch": lambda m, x: m.permute_batch(x.small, indices=x.order),
    "get_property": lambda m, x: m.get_property(x.small, key="layout"),
    "sequence_rearrange": lambda m, x: m.sequence_rearrange(x.frames, new_order=[3, 2, 1, 0]),
    "element_extract": lambda m, x: m.element_extract(x.frames, element_map=[0]),
    "per_frame": lambda m, x: m.per_frame(x.frames),
    "resize frames": lambda m, x: m.resize(x.frames, size=[64, 64]),
    "reductions.sum": lambda m, x: m.reductions.sum(x.images, axes=[0, 1]),
    "reductions.mean": lambda m, x: m.reductions.mean(x.images, axes=[0, 1]),
    "reductions.mean_square": lambda m, x: m.reductions.mean_square(x.small),
    "reductions.rms": lambda m, x: m.reductions.rms(x.small),
    "reductions.min": lambda m, x: m.reductions.min(x.small),
    "reductions.max": lambda m, x: m.reductions.max(x.small),
    "reductions.std_dev": lambda m, x: m.reductions.std_dev(x.small, 120.0),
    "reductions.variance": lambda m, x: m.reductions.variance(x.small, 120.0),
    # random numbers
    "random.uniform": lambda m, x: m.random.uniform(batch_size=x.batch_size, device=x.device, range=[0.0, 1.0]),
    "random.normal [1000]": lambda m, x: m.random.normal(batch_size=x.batch_size, device=x.device, shape=[1000]),
    "random.coin_flip": lambda m, x: m.random.coin_flip(batch_size=x.batch_size, device=x.device),
    "random.choice": lambda m, x: m.random.choice([1, 2, 3], batch_size=x.batch_size),
    "random.beta": lambda m, x: m.random.beta(batch_size=x.batch_size, alpha=2.0, beta=3.0),
    "batch_permutation": lambda m, x: m.batch_permutation(batch_size=x.batch_size),
    "random_crop_generator": lambda m, x: m.random_crop_generator(x.extents),
    "roi_random_crop": lambda m, x: m.roi_random_crop(crop_shape=[60, 60], roi_start=[10, 10], roi_end=[100, 100]),
    # constants
    "zeros": lambda m, x: m.zeros(shape=[224, 224, 3], batch_size=x.batch_size),
    "ones": lambda m, x: m.ones(shape=[224, 224, 3], batch_size=x.batch_size),
    "full": lambda m, x: m.full(7, shape=[224, 224, 3], batch_size=x.batch_size),
    "zeros_like": lambda m, x: m.zeros_like(x.small),
    "ones_like": lambda m, x: m.ones_like(x.small),
    "full_like": lambda m, x: m.full_like(x.small, 7),
    # boxes, points, masks
    "bb_flip": lambda m, x: m.bb_flip(x.boxes, ltrb=True),
    "bbox_paste": lambda m, x: m.bbox_paste(x.boxes, ratio=1.5, ltrb=True),
    "bbox_rotate": lambda m, x: m.bbox_rotate(x.boxes, angle=30.0, input_shape=[224, 224]),
    "box_encoder": lambda m, x: m.box_encoder(x.boxes, x.box_classes, anchors=x.anchors),
    "random_bbox_crop": lambda m, x: m.random_bbox_crop(x.boxes, x.box_classes, bbox_layout="xyXY"),
    "coord_flip": lambda m, x: m.coord_flip(x.points, layout="xy"),
    "coord_transform": lambda m, x: m.coord_transform(x.points, MT=_AFFINE),
    "segmentation.random_mask_pixel": lambda m, x: m.segmentation.random_mask_pixel(x.mask, foreground=1),
    "segmentation.random_object_bbox": lambda m, x: m.segmentation.random_object_bbox(x.mask),
    "segmentation.select_masks": lambda m, x: m.segmentation.select_masks(x.mask_ids, x.polygons, x.vertices),
    "transforms.rotation": lambda m, x: m.transforms.rotation(angle=30.0, batch_size=x.batch_size),
    "transforms.scale": lambda m, x: m.transforms.scale(scale=[2.0, 3.0], batch_size=x.batch_size),
    "transforms.shear": lambda m, x: m.transforms.shear(shear=[0.1, 0.2], batch_size=x.batch_size),
    "transforms.translation": lambda m, x: m.transforms.translation(offset=[1.0, 2.0], batch_size=x.batch_size),
    "transforms.crop": lambda m, x: m.transforms.crop(
        from_start=[0.0, 0.0], from_end=[2.0, 2.0], batch_size=x.batch_size),
    "transforms.combine": lambda m, x: m.transforms.combine(x.matrices, x.matrices),
    # sound
    "audio_resample": lambda m, x: m.audio_resample(x.sound, in_rate=44100.0, out_rate=16000.0),
    "preemphasis_filter": lambda m, x: m.preemphasis_filter(x.sound),
    "power_spectrum": lambda m, x: m.power_spectrum(x.lines),
    "spectrogram": lambda m, x: m.spectrogram(x.sound, nfft=512, window_length=400, window_step=160),
    "spectrogram tf": lambda m, x: m.spectrogram(x.sound, nfft=512, window_length=400, window_step=160, layout="tf"),
    "mel_filter_bank": lambda m, x: m.mel_filter_bank(x.spectrum, nfilter=80, sample_rate=16000.0),
    "to_decibels": lambda m, x: m.to_decibels(x.mel),
    "mfcc": lambda m, x: m.mfcc(x.mel),
    "nonsilent_region": lambda m, x: m.nonsilent_region(x.sound),
    # flow
    "optical_flow": lambda m, x: m.optical_flow(x.frames),
}
# fmt: on

WITHOUT_A_LINE = {
    "bbox_transform": "not in DALI", "color_jitter": "not in DALI", "random_erasing": "not in DALI",
    "cutmix": "not in DALI", "mixup": "not in DALI",
    "decoders.inflate": "on a GPU only in DALI", "decoders.video": "bench video", "dump_image": "writes files",
    "io.file.read": "bench readers",
}  # fmt: skip
"""Why operators are not in the table. Operators of `ndd.experimental` in it are old names of others."""
