from i2l.training.monitor import Display, format_duration


def test_a_log_gets_one_plain_line_a_step(capsys):
    display = Display(quiet=False)
    display.start()
    display.note("[not markup] at /some/path")
    display.step(
        step=1200, epochs=0.5, done=0.1, time_left_s=192.4, scalars={"images_per_s": 4812.3, "loss": 1}
    )
    display.stop()
    assert capsys.readouterr().err.splitlines() == [
        "[not markup] at /some/path",
        "step 1,200  epoch 0.50  loss 1.0000  images/s 4,812  3:12 left",
    ]


def test_other_processes_are_silent(capsys):
    display = Display(quiet=True)
    display.start()
    display.note("hello")
    display.step(step=1, epochs=0, done=0, time_left_s=None, scalars={})
    display.stop()
    assert capsys.readouterr().err == ""


def test_durations():
    assert [format_duration(s) for s in (5, 59.6, 3599, 3600, 90061)] == [
        "0:05",
        "1:00",
        "59:59",
        "1:00:00",
        "25:01:01",
    ]
