"""Published input pipelines, each a short function over public operators: from a reader's batches to finished batches.

    recipe = ndd.recipes.imagenet_train(224, augment="trivial", random_erase=0.1, device="gpu")
    for jpegs, labels in reader.next_epoch(batch_size=64):
        images, labels = recipe(jpegs, labels)

A call with settings returns a `Recipe`, which is called with batches. Further batches, such as labels, are returned unchanged
after its results. `print(recipe)` shows the steps: copy them to change them. Recipes can be pickled. `@ndd.recipes.recipe`
turns your own function into a recipe.

Random recipes draw from `rng`, an `ndd.random.RNG`; by default from the thread's generator, which `ndd.random.set_seed` seeds.
"""

from ndd.recipes.classification import imagenet_eval, imagenet_train
from ndd.recipes.detection import detection
from ndd.recipes.recipe import Recipe, recipe
from ndd.recipes.segmentation import segmentation
from ndd.recipes.self_supervised import dino_multicrop, simclr
from ndd.recipes.speech import speech
from ndd.recipes.video import video_clips

__all__ = [
    "Recipe",
    "detection",
    "dino_multicrop",
    "imagenet_eval",
    "imagenet_train",
    "recipe",
    "segmentation",
    "simclr",
    "speech",
    "video_clips",
]
