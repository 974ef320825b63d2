"""Names of lines travel to the processes of a build."""

import pickle

from i2l.dataset.sources import LineNames


def test_names_of_lines_can_be_sent_to_another_process():
    names = pickle.loads(pickle.dumps(LineNames(names=["a", "b"], num_lines=[2, 1])))
    assert [names[number] for number in range(len(names))] == ["a:1", "a:2", "b:1"]
