from albert_lab.report.markdown import fold


def test_sections_are_folded_by_heading_and_others_are_unchanged():
    text = "# Title\n\nOpening.\n\n## Scores\n\n| a |\n\n## Cost\n\n| b |\n\n## Notes\n\n1. c\n"
    details = "<details>\n<summary>Cost</summary>\n\n| b |\n\n</details>"
    assert fold(text, ["Cost", "Absent"]) == text.replace("## Cost\n\n| b |", details)
