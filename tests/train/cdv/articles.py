"""Short articles on diseases: a discourse model learns from them in seconds."""

import random

import capr
from capr.annotate.mentions import annotator
from capr.supervise.discourses import TrainingDiscourses
from capr.supervise.labels import Labeller

DISEASES = (
    "asthma",
    "gout",
    "measles",
    "malaria",
    "rabies",
    "cholera",
    "mumps",
    "leprosy",
    "scurvy",
    "anthrax",
    "tetanus",
    "psoriasis",
    "epilepsy",
    "lupus",
    "dengue",
    "typhus",
)
ASPECT_WORDS = {
    "Symptoms": ("wheeze", "cough", "pain", "fever", "rash", "swelling"),
    "Treatment": ("tablets", "rest", "surgery", "drops", "colchicine", "oxygen"),
    "Prognosis": ("recovery", "survival", "death", "years", "outcome", "relapse"),
}
FILLER = ("often", "people", "there", "patients", "usually", "cases", "many", "some", "most", "then")


def article(disease, number):
    draw = random.Random(f"{disease} {number}")

    def sentence(words, subject):
        return f"{subject} {' '.join(draw.sample(words, 3))} {' '.join(draw.sample(FILLER, 4))}.".capitalize()

    sections = [
        {"heading": heading, "text": " ".join(sentence(words, draw.choice([disease, "it", "it"])) for _ in range(4))}
        for heading, words in ASPECT_WORDS.items()
    ]
    abstract = f"{disease.title()} is a disease of {' '.join(draw.sample(FILLER, 4))} people."
    return {"id": f"{disease}-{number}", "title": disease.title(), "abstract": abstract, "sections": sections}


def documents(world):
    return list(capr.read(world / "articles.jsonl"))


def labelled(world, **options):
    return TrainingDiscourses.read(documents(world), Labeller(annotator(False), **options))


def halved(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
