# Written by `python -m ndd stubs`. Do not edit.

from ndd.recipes.classification import imagenet_eval, imagenet_train
from ndd.recipes.detection import detection
from ndd.recipes.recipe import Recipe, recipe
from ndd.recipes.segmentation import segmentation
from ndd.recipes.self_supervised import dino_multicrop, simclr
from ndd.recipes.speech import speech
from ndd.recipes.video import video_clips

__all__ = [
    'Recipe', 'detection', 'dino_multicrop', 'imagenet_eval', 'imagenet_train', 'recipe', 'segmentation', 'simclr',
    'speech', 'video_clips',
]


