import looks
from looks import LOOKS, UNPLANNED, Rates
from power import NOISES


def test_the_text_has_every_simulation(monkeypatch):
    rates = dict.fromkeys((*looks.SPENDING, UNPLANNED), Rates(1.0, 2.0, 3.0))
    monkeypatch.setattr(looks, "false_decisions", lambda *_: rates)
    monkeypatch.setattr(looks, "power", lambda *_: (rates, dict.fromkeys(LOOKS, Rates(4.0, 5.0, 6.0))))
    text = looks.as_markdown(10)
    assert "0.0249 / 0.0164 / 0.0189" in text
    assert all(noise in text for noise in NOISES)
    assert text.count(" 2.0 ") == 3 * 2 * len(NOISES)
