import numpy as np
import torch

from i2l.formulas.vocabulary import Vocabulary
from i2l.model.calstm.network import Recognizer
from i2l.training.device_split import ResidentSplit
from i2l.training.distributed import Processes
from i2l.training.validation import Validator, attention_picture, greedy_decode
from tests.training.conftest import small_config

MAX_TOKENS = 20


def make_model(dataset):
    torch.manual_seed(0)
    model = Recognizer(small_config().model, vocab_size=len(dataset.vocabulary)).eval()
    with torch.no_grad():  # larger weights make formulas that differ, of different lengths
        model.output.score.weight *= 8
    return model


def load(dataset, model, name="val"):
    return ResidentSplit(
        dataset.split(name),
        vocabulary=dataset.vocabulary,
        canvas_shape=model.config.canvas_shape,
        device=torch.device("cpu"),
    )


@torch.no_grad()
def read_by_forward(model, pixels):
    """Greedy reading by the definition: the whole prefix again for every token."""
    token_ids = []
    while len(token_ids) < MAX_TOKENS:
        logits = model(
            pixels[None], torch.tensor([[*token_ids, 0]]), torch.tensor([len(token_ids) + 1])
        ).logits
        logits[..., Vocabulary.bos_id] = -torch.inf
        token_ids.append(int(logits[0, -1].argmax()))
        if token_ids[-1] == Vocabulary.eos_id:
            break
    return token_ids + [0] * (MAX_TOKENS - len(token_ids))


def test_greedy_decoding_takes_the_likeliest_token(dataset):
    model = make_model(dataset)
    canvases = load(dataset, model).canvases(torch.arange(8))
    with torch.no_grad():
        token_ids = greedy_decode(model, canvases, MAX_TOKENS)
    assert token_ids.tolist() == [read_by_forward(model, canvas) for canvas in canvases]
    assert len({tuple(row) for row in token_ids.tolist()}) > 1


def test_a_validator_scores_what_the_decoders_read(dataset):
    model = make_model(dataset)
    data = load(dataset, model, "train")
    indices = torch.arange(64)
    answers, _ = data.targets(indices, num_tokens=MAX_TOKENS)
    known = data.canvases(indices).flatten(1)

    def perfect(_, pixels, max_tokens):
        """Knows every image."""
        same = (pixels.flatten(1)[:, None] == known).all(dim=2)
        return answers[same.int().argmax(dim=1)]

    validator = Validator(
        data,
        decoders={"greedy": greedy_decode, "perfect": perfect},
        processes=Processes(device="cpu"),
        max_tokens=MAX_TOKENS,
        num_samples=40,
    )
    scores = validator(model)
    assert scores["perfect"].exact_match == scores["perfect"].bleu == 1.0
    assert scores["perfect"].num_formulas == scores["greedy"].num_formulas == 40
    assert scores["greedy"].exact_match < 0.1
    assert len(np.unique(validator.indices)) == 40


def test_attention_pictures_show_one_strip_a_token(dataset):
    model = make_model(dataset)
    picture = attention_picture(model, load(dataset, model), 0, max_steps=5)
    height, width = model.config.canvas_shape
    assert picture.shape[1] == width
    assert picture.shape[0] % height == 0
    assert 1 <= picture.shape[0] // height <= 5
    assert picture.dtype == np.uint8
    assert picture.min() < picture.max()
