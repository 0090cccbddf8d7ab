import re

import pytest

from capr.annotate.context import context, read_rules, rules
from capr.documents import CaprError, Span


def flags(marked: str, heading: str | None = None) -> set[str]:
    begin, end = marked.index("«"), marked.index("»") - 1
    return set(context(marked.replace("«", "").replace("»", ""), Span(begin, end), heading))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The culture is negative for «MRSA».", {"negated"}),
        ("«Fever»: none", {"negated"}),
        ("No fever, chills or «cough».", {"negated"}),
        ("No fever or chills, but «cough» is present.", set()),
        ("He denies «chest pain».", {"negated"}),
        ("«Appendicitis» was ruled out.", {"negated"}),
        ("No increase in «edema».", set()),
        ("No change in the «mass».", set()),
        ("Not only «fever» but also rash.", set()),
        ("History of «stroke».", {"historical"}),
        ("Cholecystectomy, «appendectomy» 2019, hernia repair.", {"historical"}),
        ("«Creatinine» rose to 1.9 on [**2025-1-17**].", set()),
        ("«Fever» of 39 on 2025/01/17.", set()),
        ("Father had «diabetes».", {"family"}),
        ("No family history of «cancer».", {"negated", "family"}),
        ("Rule out «PE».", {"possible"}),
        ("We cannot rule out «PE».", {"possible"}),
        ("Return if «fever» recurs.", {"hypothetical"}),
        ("Mother noticed that he had «fever».", set()),
        ("Denies chest pain. Has «dyspnea».", set()),
        ("The child isn't «wheezy».", {"negated"}),
        ("Neuro: No «numbness» or tingling.", {"negated"}),
        ("Cough +, «haemoptysis» -, wheeze -", {"negated"}),
        ("«Cough» +, haemoptysis -", set()),
        ("No bleed, cannot exclude «early infarct».", {"possible"}),
        ("Likely syncope, no «arrhythmia».", {"negated"}),
        ("He had no «signs of shock».", {"negated"}),
        ("Mother has asthma; the patient has «eczema».", set()),
        ("We did not increase «sacubitril-valsartan».", set()),
        ("We didn't increase «furosemide».", set()),
        ("«Bisoprolol» has not been increased.", set()),
        ("«Metoprolol» was not changed.", set()),
        ("«Warfarin» was not stopped.", set()),
        ("We did not reduce «apixaban».", set()),
        ("The dose of «insulin» was not adjusted.", set()),
        ("We did not increase aspirin, and there is no «rash».", {"negated"}),
    ],
)
def test_common_errors_of_other_tools(text, expected):
    assert flags(text) == expected


def test_heading_sets_the_context():
    assert flags("«Stroke» in her sixties", "FAMILY HISTORY:") == {"family", "historical"}
    assert flags("«Asthma»", "PMH") == {"historical"}
    assert flags("The patient herself has «migraine».", "Family History") == set()


def test_context_has_the_cue_and_its_scope():
    text = "She denies fever, chills or cough but reports pain."
    cue = context(text, Span(18, 24))["negated"]
    assert (text[18:24], cue.words, cue.span.of(text)) == ("chills", "denies", "denies")
    assert cue.scope.of(text) == " fever, chills or cough "


def test_table_of_rules_is_valid():
    assert len(rules()) > 400


@pytest.mark.parametrize(
    ("row", "fact"),
    [
        ("no", "'no' is not a rule. Fix: write a pattern"),
        ("no\tnegated\tsideways", "is not a rule. Fix: write a pattern"),
        ("no\tdenied\tforward", "is not a rule. Fix: write a pattern"),
        ("no (\tnegated\tforward", "is not a pattern (missing ), unterminated subpattern"),
        ("(no)\tnegated\tforward", "has a group. Fix: write (?: for (."),
        ("{relative} had\tfamily\tforward", "there is no list {relative}. Fix: write it above"),
    ],
)
def test_error_of_an_invalid_rule_has_file_line_fact_and_fix(row, fact):
    table = f"pattern\tflag\tscope\nno\tnegated\tforward\n{row}\n"
    with pytest.raises(CaprError) as error:
        list(read_rules(table, "rules.tsv"))
    assert str(error.value).startswith("rules.tsv, line 3: ")
    assert fact in str(error.value)
    assert "Fix: " in str(error.value)


@pytest.mark.parametrize("text", ["Denies nausea, chest pain or dyspnea.", "No fever, skin rash or heart failure."])
def test_symptom_that_begins_with_a_body_part_does_not_end_a_list(text):
    for word in re.findall(r"chest pain|dyspnea|skin rash|heart failure", text):
        begin = text.index(word)
        assert "negated" in context(text, Span(begin, begin + len(word)))
