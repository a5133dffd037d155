from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from cofactor.report.markup import badge, copied, element, listed, section, table
from tests.report.making import EVIL, QUOTED


def test_text_never_becomes_markup() -> None:
    assert str(element("p", EVIL)) == "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>"


def test_attributes_cannot_be_closed_from_inside() -> None:
    assert str(element("p", title='a" onclick="x')) == '<p title="a&#34; onclick=&#34;x"></p>'


@given(st.text())
def test_whatever_is_written_has_no_bracket_of_its_own(text: str) -> None:
    page = str(table((text, text), [(text, text)], caption=text)) + str(badge(text)) + str(listed([text]))
    page += str(section("a", text, copied(text, label=text, identity="b")))
    assert page.count("<") == str(
        Markup(
            str(table(("", ""), [("", "")], caption=""))
            + str(badge(""))
            + str(listed([""]))
            + str(section("a", "", copied("", label="", identity="b")))
        )
    ).count("<")


def test_elements_inside_elements_stay_elements() -> None:
    assert str(element("p", element("b", QUOTED), 3)) == "<p><b>&#34;&#39;&amp;&lt;b&gt;🎬</b>3</p>"


def test_attributes_that_are_none_or_false_are_left_out_and_true_has_no_value() -> None:
    found = str(element("details", "x", open=True, id=None, hidden=False, aria_label="y", class_="z"))
    assert found == '<details open aria-label="y" class="z">x</details>'


def test_numbers_stand_to_the_right_and_the_first_cell_names_its_row() -> None:
    found = str(table(("a", "b"), [("x", 1)], caption="c", numeric=(1,)))
    assert '<th scope="row">x</th><td class="number">1</td>' in found
    assert '<th scope="col" class="number">b</th>' in found
