"""Recipes: the named sets of limits that a dataset is built with."""

from dataclasses import dataclass

from i2l.errors import I2LError

PAPER_STYLES, WORLD_STYLES, PHOTO_STYLES = "paper", "world", "photo"
TRAIN, VAL, TEST = SPLITS = ("train", "val", "test")


@dataclass(frozen=True)
class Recipe:
    """What a formula must be to stay in the dataset, and in which style it is drawn."""

    name: str
    # a training formula with a rarer token is dropped; occurrences are counted in the training split only
    min_token_count: int
    # limits of a sample, for every split; the two pixel limits are those of the model's canvas
    max_tokens: int
    max_width_px: int
    max_height_px: int
    # "paper" draws all in one style; "world" draws each sample's own style from the seed, "photo" also does,
    # three of four as a phone would photograph it
    styles: str
    # shares of a seeded split; unused where the splits are given
    val_fraction: float
    test_fraction: float


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("im2latex-90k", 24, 150, 1086, 126, PAPER_STYLES, 0.05, 0.05),
        Recipe("i2l-140k", 50, 150, 1086, 126, PAPER_STYLES, 0.1, 0.1),
        # 300 dpi and 14 pt draw the same formula 1.75 times as large as the paper's style does
        Recipe("world", 24, 200, 1920, 256, WORLD_STYLES, 0.02, 0.02),
        # displays of several lines, as large as a page has them
        Recipe("displays", 24, 600, 1600, 1400, PAPER_STYLES, 0.02, 0.02),
        Recipe("world-displays", 24, 600, 2800, 2450, WORLD_STYLES, 0.02, 0.02),
        Recipe("photo", 24, 200, 1920, 256, PHOTO_STYLES, 0.02, 0.02),
        Recipe("photo-displays", 24, 600, 2800, 2450, PHOTO_STYLES, 0.02, 0.02),
    )
}


def find_recipe(name: str) -> Recipe:
    """Give the recipe of that name.

    Raises:
        I2LError: if there is none.
    """
    if name not in RECIPES:
        raise I2LError(f"No recipe is called {name!r}; choose one of: {', '.join(RECIPES)}.")
    return RECIPES[name]
