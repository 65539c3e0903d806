import base64

from albert_lab.report.page import page

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def test_a_page_is_one_file_without_scripts_and_has_its_pictures_in_it(tmp_path):
    (tmp_path / "curves.png").write_bytes(PNG)
    text = page(
        "A <b> title",
        "# A \\<b\\> title\n\n![words](curves.png)\n\n![gone](absent.png)\n\n![out](../x.png)\n",
        tmp_path,
    )
    assert "<title>A &lt;b&gt; title</title>" in text
    assert f'src="data:image/png;base64,{base64.b64encode(PNG).decode()}"' in text
    assert "gone" in text
    assert text.count("<img") == 1
    assert "<script" not in text


def test_folded_parts_fold_and_other_tags_are_shown(tmp_path):
    text = page(
        "T",
        "# T\n\n<details><summary>More</summary>\n\n| a |\n|:--|\n| 1 "
        "|\n\n</details>\n\n<b>bold</b>\n",
        tmp_path,
    )
    assert "<details><summary>More</summary>" in text
    assert text.index("<td>1</td>" if "<td>1</td>" in text else "1</td>") < text.index("</details>")
    assert "&lt;b&gt;bold" in text
