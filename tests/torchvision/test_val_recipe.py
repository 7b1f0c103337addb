"""The recipe by which networks are validated, of every picture of the data, beside torchvision."""

from __future__ import annotations

import pytest
import torch
from encoded import FOLDER
from selection import drawn

import ndd
from ndd.torchvision.installed import import_torchvision
from ndd.torchvision.v2 import functional as F

FILES = sorted(p for p in FOLDER.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg", ".png"))
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


@pytest.mark.skipif(not FILES, reason="there is no ../shared/data/images")
def test_every_picture():
    try:
        import_torchvision()
    except ImportError:
        pytest.skip("torchvision is not installed")
    from torchvision.transforms.v2 import functional as oracle

    some = drawn(FILES, 16, "validation")
    encoded = ndd.batch([ndd.tensor(torch.frombuffer(bytearray(p.read_bytes()), dtype=torch.uint8)) for p in some])
    pictures = ndd.decoders.image(encoded, on_error="skip")  # some are damaged
    resized = F.resize(pictures, [256])
    output = F.normalize(F.to_dtype(F.center_crop(resized, [224]), torch.float32, scale=True), MEAN, STD)
    for source, middle, result in zip(pictures, resized, output, strict=True):
        picture = source.torch().permute(2, 0, 1)
        wanted = oracle.resize(picture, [256])
        assert middle.shape[:2] == tuple(wanted.shape[1:])
        assert (middle.torch().permute(2, 0, 1).int() - wanted.int()).abs().max() <= 1
        wanted = oracle.normalize(oracle.to_dtype(oracle.center_crop(wanted, [224]), scale=True), MEAN, STD)
        # One of 255 is 0.0175 where the deviation is the least.
        assert (result.torch().permute(2, 0, 1) - wanted).abs().max() <= 0.0176
