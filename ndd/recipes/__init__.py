"""Published input pipelines, each a short function over public operators: batches as readers give them in, finished batches out.

    recipe = ndd.recipes.imagenet_train(224, augment="trivial", random_erase=0.1, device="gpu")
    for jpegs, labels in reader.next_epoch(batch_size=64):
        images, labels = recipe(jpegs, labels)

Calling one with its settings gives a `Recipe`, which is called with batches. What a recipe does not know (labels and the like)
comes out behind its results, as it was. `print(recipe)` shows the steps: copy them where you want something else. Recipes can
be pickled. A function of your own becomes one with `@ndd.recipes.recipe`.

Random ones draw from `rng`, an `ndd.random.RNG`, or from the thread's generator: `ndd.random.set_seed` repeats them.
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
