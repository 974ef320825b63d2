import pytest
import torch

from i2l.training.distributed import Processes
from i2l.training.trainer import SCALARS, EngineError, choose_engine
from tests.training.conftest import make_trainer, small_config


def trained(dataset, engine, device, *, num_steps=3, **settings):
    """The scalars, predictions and weights of some steps."""
    config = small_config(engine=engine, window_step=1, learning_rate=1e-3, **settings)
    _, trainer = make_trainer(dataset, config, Processes(device=device))
    results = [trainer.step() for _ in range(num_steps)]
    scalars = torch.stack([result.gradients.scalars for result in results]).cpu()
    predicted = [result.gradients.predicted.cpu() for result in results]
    weights = torch.cat([p.detach().flatten() for p in trainer.model.parameters()]).cpu()
    return scalars, predicted, weights, {result.shape for result in results}


def test_accuracy_is_of_the_tokens_that_a_formula_has(dataset):
    """Behind its end there is padding, which every model gets right."""
    config = small_config(batch_size=8)
    data, trainer = make_trainer(dataset, config, Processes(device="cpu"))
    result = [trainer.step() for _ in range(3)][-1]
    target, lengths = data.targets(result.share, num_tokens=result.shape.num_tokens)
    assert int(lengths.sum()) < target.numel()
    right = [
        (predicted[:length] == wanted[:length]).sum()
        for predicted, wanted, length in zip(result.gradients.predicted, target, lengths, strict=True)
    ]
    accuracy = result.gradients.scalars[SCALARS.index("token_accuracy")]
    assert float(accuracy) == pytest.approx(float(sum(right) / lengths.sum()))


def test_the_fast_engine_computes_what_the_plain_one_does(dataset):
    scalars, predicted, weights, shapes = trained(dataset, "plain", "cpu", num_steps=6)
    fast_scalars, fast_predicted, fast_weights, _ = trained(dataset, "fast", "cpu", num_steps=6)
    assert len({shape.window for shape in shapes}) > 1
    torch.testing.assert_close(fast_scalars, scalars, rtol=1e-4, atol=1e-5)
    assert all(map(torch.equal, fast_predicted, predicted))
    torch.testing.assert_close(fast_weights, weights, rtol=1e-3, atol=1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_captured_graphs_compute_what_the_fast_engine_does(dataset, precision):
    # Shapes come again in the second epoch, so replays are tested, and after another graph has run.
    settings = {"num_steps": 20, "precision": precision}
    scalars, predicted, weights, _ = trained(dataset, "fast", "cuda", **settings)
    graph_scalars, graph_predicted, graph_weights, _ = trained(dataset, "graph", "cuda", **settings)
    torch.testing.assert_close(graph_scalars, scalars, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(graph_weights, weights, rtol=1e-2, atol=1e-3)
    assert sum(map(torch.equal, graph_predicted, predicted)) > 15


def test_engines_of_a_device():
    cpu = torch.device("cpu")
    assert choose_engine("auto", cpu) == "plain"
    assert choose_engine("auto", torch.device("cuda")) == "graph"
    assert choose_engine("fast", cpu) == "fast"
    with pytest.raises(EngineError, match="needs a GPU"):
        choose_engine("graph", cpu)
