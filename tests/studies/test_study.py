from toy import silent, toy_plan

from albert_lab.studies import study


def test_seeds_that_a_later_command_adds_are_known_whenever_it_runs(corpus, own_home):
    first, later = toy_plan(corpus, "seed=0,1"), toy_plan(corpus, "seed=0,1,2")
    study.begin(first)
    study.write(first.report_folder, study.collect(first, {}, "", silent))
    grown = study.collect(later, {}, "", silent)
    assert grown.first_seeds == (0, 1)
    study.write(later.report_folder, grown)
    assert study.read(later.report_folder).first_seeds == (0, 1)
    other = toy_plan(corpus, "seed=0,1,2", "dropout=0.2")
    assert study.collect(other, {}, "", silent).first_seeds == (0, 1, 2), "other runs: another study"
