"""What the tests of faults share, and a process that forks the ones that they kill.

The tests load it through `conftest.py`. Run as a program, it loads everything that takes long once, and then starts a
process for every job that it reads from its input: a line of JSON with the name of a job and its arguments.
"""

import json
import logging
import mmap  # noqa: F401 (later, another user could not load it)
import os
import random
import signal
import sqlite3
import sys
import time
import traceback
import zlib
from pathlib import Path

import numpy as np

import capr.index.embedded
import capr.index.store
import capr.index.vectors
import capr.index.words
import capr.index.writer
import capr.search.library
import capr.segment
from capr.annotate import Vocabulary
from capr.documents import CaprError, Document
from capr.index.protocol import EncoderIdentity
from capr.search.library import Library

DIMENSIONS = 24
TOPICS = ("aspirin after a heart attack", "a dry cough and fever", "metformin for diabetes", "pain in the left knee")
HEADINGS = ("HISTORY", "ASSESSMENT", "PLAN", "MEDICATIONS", "ALLERGIES")


# --- documents and vectors, the same in every process ---


def marker(id, version, part):
    """A word that stands in one passage of one version of one document only."""
    return f"mark{id}v{version}p{part}"


def make(id, version):
    """A version of a document; every passage says which one it is of."""
    chosen = random.Random(zlib.crc32(f"{id} {version}".encode()))
    parts = [
        f"{heading}:\nThis is part {part} of {id} in version {version}, {marker(id, version, part)}. "
        f"It speaks of {chosen.choice(TOPICS)}. " + "Nothing else was found on that day. " * chosen.randint(0, 12)
        for part, heading in enumerate(HEADINGS[: chosen.randint(1, 5)])
    ]
    said = {"patient": f"p{id}", "version": version, "date": f"2020-01-{1 + version % 28:02}"}
    return Document(id, "\n\n".join(parts) + "\n" * chosen.randint(0, 2), f"Note {id} {version}", said)


class Fake:
    """An encoder that counts words."""

    def __init__(self, name="fake-a"):
        self.identity = EncoderIdentity(name, f"digest of {name}", DIMENSIONS, f"/nowhere/{name}")

    def passages(self, texts):
        vectors = np.zeros((len(texts), DIMENSIONS), np.float32)
        for row, text in enumerate(texts):
            for word in text.split():
                vectors[row, zlib.crc32((self.identity.name + word).encode()) % DIMENSIONS] += 1
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)

    def query(self, text):
        return self.passages([text])[0]


class FakeDiscourse:
    """A discourse model that counts the words of a sentence, and of the whole document a little."""

    identity = EncoderIdentity("fake-cdv", "digest of fake-cdv", DIMENSIONS, "/nowhere/fake-cdv")
    threshold = 0.5

    def sentences(self, document):
        spans = capr.segment.sentences(document.text)
        around = self.query(document.text, document.text)
        rows = [self._normal(self.query(document[span], document[span]) + 0.2 * around) for span in spans]
        return spans, np.array(rows, np.float32).reshape(-1, DIMENSIONS)

    def query(self, entity, aspect):
        half = np.zeros((2, DIMENSIONS // 2), np.float32)
        for row, text in enumerate((entity, aspect)):
            for word in text.split():
                half[row, zlib.crc32(word.lower().encode()) % (DIMENSIONS // 2)] += 1
        return self._normal(half.reshape(-1))

    def _normal(self, vector):
        half = vector.reshape(2, -1)
        lengths = np.maximum(np.linalg.norm(half, axis=1, keepdims=True), 1e-12)
        return (half / lengths / np.sqrt(2)).reshape(-1).astype(np.float32)


def known_models(path):
    """The encoder and the discourse model that a library remembers."""
    try:
        with Library(path, vocabulary=Vocabulary.load()) as library:
            encoder, discourse = (library.index.encoder(grain) for grain in capr.index.Grain)
    except CaprError:
        return None, None
    return None if encoder is None else Fake(encoder.name), None if discourse is None else FakeDiscourse()


def opened(path, encoder=None, discourse=None):
    """A library with the models that it remembers, or the given ones."""
    known, known_discourse = known_models(path)
    models = {"encoder": known or encoder, "discourse": known_discourse or discourse}
    return Library(path, **models, vocabulary=Vocabulary.load())


def small_batches():
    """Many commits."""
    capr.search.library.BATCH = capr.search.library.WITHOUT = 6
    capr.index.writer.BATCH = 4


# --- changes, and which states they may leave ---


def plan(seed, size=12, ids=30):
    """Changes to a library: what and with what."""
    chosen = random.Random(seed)
    changes = [["add", [[f"d{n}", seed * 1000] for n in chosen.sample(range(ids), 12)]]]
    for step in range(1, size):
        what = chosen.choices(("add", "remove", "compact", "encode"), (10, 4, 1, 1.5))[0]
        some = [f"d{n}" for n in chosen.sample(range(ids), chosen.randint(1, 9))]
        if what == "add":
            changes.append(["add", [[id, seed * 1000 + step] for id in some]])
        else:
            changes.append([what, {"remove": some[:4], "encode": f"fake-{chosen.choice('ab')}"}.get(what)])
    return changes


def states(changes, lines, possible):
    """For every document the versions that it may have, None for none, after what a process has told of its changes."""
    possible = {id: set(versions) for id, versions in possible.items()}
    for line in lines:
        if "begin" in line:
            what, given = changes[line["begin"]]
            for id, version in given if what == "add" else ():
                possible.setdefault(id, {None}).add(version)
            for id in given if what == "remove" else ():
                possible.setdefault(id, {None}).add(None)
        elif "kept" in line:
            versions = dict(changes[line["of"]][1])
            possible.update({id: {versions[id]} for id in line["kept"]})
        elif "done" in line:
            what, given = changes[line["done"]]
            possible.update({id: {version} for id, version in given} if what == "add" else {})
            possible.update({id: {None} for id in given} if what == "remove" else {})
    return possible


# --- jobs ---


class Log:
    """Lines that outlive the process."""

    def __init__(self, path):
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def __call__(self, **said):
        os.write(self._file, json.dumps(said).encode() + b"\n")


def change(log, path, changes, encoder=None, kill=None, checked=None, discourse=False):
    """Makes changes, and tells when each begins, what is kept and when it is done."""
    small_batches()
    if checked is not None:
        capr.index.embedded.CHECKED = checked
    if kill:
        kill_at(*kill)
    library = opened(path, Fake(encoder) if encoder else None, FakeDiscourse() if discourse else None)
    for place, (what, given) in enumerate(changes):
        log(begin=place)
        if what == "add":
            documents = [make(id, version) for id, version in given]
            library.add(documents, replace=True, on_commit=lambda ids, of=place: log(kept=list(ids), of=of))
        elif what == "remove":
            library.remove(given)
        elif what == "compact":
            library.compact()
        else:
            library.encode(Fake(given))
        log(done=place)
    library.close()


def search(log, path, queries, checked=None):
    """What searches find; and what verifying says before and after mending."""
    if checked is not None:
        capr.index.embedded.CHECKED = checked
    with opened(path) as library:
        for query, mode in queries:
            try:
                found = library.search(query, 5, mode=mode)
                log(hits=[[hit.document, hit.passage.span.begin, hit.text] for hit in found], query=query, mode=mode)
            except CaprError as error:
                log(refused=str(error), query=query, mode=mode)
        log(problems=library.verify().problems)
        log(repaired=library.verify(repair=True).problems)
        for query, mode in queries:
            found = library.search(query, 5, mode=mode)
            log(again=[[hit.document, hit.passage.span.begin, hit.text] for hit in found], query=query, mode=mode)


def attempt(log, path, calls, user=None):
    """Calls methods, as another user if one is given; tells how each ended."""
    if user is not None:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    for name, *given in calls:
        try:
            with opened(path) as library:
                if name == "add":
                    outcome = library.add([make(*one) for one in given]).added
                elif name == "search":
                    outcome = [[hit.document, hit.text] for hit in library.search(*given)]
                elif name == "verify":
                    outcome = library.verify().problems
                else:
                    outcome = str(getattr(library, name)(*given))
            log(call=name, outcome=outcome)
        except CaprError as error:
            log(call=name, refused=str(error))
        except BaseException:
            log(call=name, crashed=traceback.format_exc())


class Warned(logging.Handler):
    """Keeps what `capr` warns of."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.messages = []
        logging.getLogger("capr").addHandler(self)

    def emit(self, record):
        self.messages.append(record.getMessage())


def write(log, path, rounds, stop, ids=12, compacting=False):
    """Adds, replaces and removes until a file appears; tells the versions of the last round."""
    small_batches()
    warned = Warned()
    chosen = random.Random(1)
    version = 0
    with opened(path) as library:
        while not Path(stop).exists() and version < rounds:
            version += 1
            some = [f"d{n}" for n in chosen.sample(range(ids), 5)]
            library.add([make(id, version) for id in some], replace=True)
            library.remove([some[0], f"d{chosen.randrange(ids)}"])
            if compacting and version % 5 == 0:
                library.compact()
        library.add([make("last", version)], replace=True)
    log(version=version, warned=warned.messages)


def read(log, path, stop, seed, ids=12):
    """Searches until a file appears; tells what was wrong, and finds what was added last."""
    warned = Warned()
    chosen = random.Random(seed)
    searches = hits = 0
    versions = set()
    with opened(path) as library:
        while True:
            last = Path(stop).exists()
            id = f"d{chosen.randrange(ids)}"
            query, mode = chosen.choice(TOPICS), chosen.choice(("hybrid", "lexical", "dense", "cdv"))
            filters = chosen.choice(({}, {}, {"patient": f"p{id}"}, {"date": "2020-01-03..2020-01-20"}))
            found = library.search(query, 8, mode=mode, filters=filters, neighbours=1)
            searches, hits = searches + 1, hits + len(found)
            for hit in found:
                versions.add(hit.metadata["version"])
                told = torn(hit)
                if filters.get("patient", hit.metadata["patient"]) != hit.metadata["patient"]:
                    told = f"{hit.document} is of another patient"
                if told:
                    log(torn=told, text=hit.text)
            document = library.index.document(id)
            if document is not None and document != make(id, document.metadata["version"]):
                log(torn=f"the document {id}", text=document.text)
            if last:
                break
        end = time.monotonic() + 60
        newest = json.loads(Path(stop).read_text())
        while not (seen := library.search(marker("last", newest, 0), 3, mode="lexical").hits):
            if time.monotonic() > end:
                break
    log(searches=searches, hits=hits, versions=len(versions), last=bool(seen), warned=warned.messages)


def torn(hit):
    """What is wrong with a hit: it must be a part of one version of its document."""
    whole = make(hit.document, hit.metadata["version"])
    if hit.text != whole[hit.passage.span] or hit.title != whole.title or hit.metadata != whole.metadata:
        return f"{hit.document} {hit.metadata['version']} at {hit.passage.span}"
    for near in hit.neighbours:
        if near.text != whole[near.span]:
            return f"a neighbour of {hit.document} {hit.metadata['version']} at {near.span}"
    return ""


def hold(log, path, until):
    """Holds the right to write until a file appears."""

    def documents():
        yield make("held", 1)
        log(holding=os.getpid())
        while not Path(until).exists():
            time.sleep(0.01)

    with opened(path) as library:
        library.add(documents())


def fill(log, path, documents, limit=None, tmpfs=None, encoder=None, same=False):
    """Adds documents where there is no room for all of them, then makes room and adds them again.

    Either in the same process, or in another one, as if the command was run again.
    """
    import resource

    small_batches()
    if tmpfs:
        mounted(path, tmpfs)
    made = [make(*one) for one in documents]
    pid = 0 if same else os.fork()
    if not pid:
        try:
            if limit:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            no_room(log, Path(path) / "library", made, encoder)
        except BaseException:
            log(crashed=traceback.format_exc())
        if not same:
            os._exit(0)
    else:
        os.waitpid(pid, 0)
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    if tmpfs:
        mounted(path, "64m", again=True)
    room(log, Path(path) / "library", made, encoder, documents[-1])


def no_room(log, path, made, encoder):
    """Adds documents until there is no room."""
    warned = Warned()
    acknowledged = []
    refused = None
    try:
        with opened(path, Fake(encoder) if encoder else None) as library:
            library.add(made, on_commit=acknowledged.extend)
    except CaprError as error:
        refused = str(error)
    log(refused=refused, kept=acknowledged, warned=warned.messages)
    try:  # what is there can still be read
        with opened(path, Fake(encoder) if encoder else None) as library:
            library.search("cough", 3)
    except CaprError as error:
        log(search=str(error))


def room(log, path, made, encoder, last):
    """Adds the documents again."""
    with opened(path, Fake(encoder) if encoder else None) as library:
        there = {document.id: document for document in library.documents()} if (path / "library.db").exists() else {}
        wrong = [id for id, document in there.items() if document not in made]
        log(there=list(there))
        library.add(made)
        missing = [document.id for document in made if library.document(document.id) != document]
        check = library.verify()
        found = [hit.document for hit in library.search(marker(*last, 0), 1, mode="lexical")]
        log(wrong=wrong, missing=missing, problems=check.problems, notices=check.notices, found=found)


def mounted(path, size, again=False):
    """Puts a small disk over a folder, for this process only."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if not again:
        if libc.unshare(0x00020000):  # CLONE_NEWNS
            raise OSError(ctypes.get_errno(), "unshare")
        if libc.mount(b"none", b"/", None, 0x44000, None):  # MS_REC | MS_PRIVATE
            raise OSError(ctypes.get_errno(), "mount")
    flags = 32 if again else 0  # MS_REMOUNT
    if libc.mount(b"tmpfs", str(path).encode(), b"tmpfs", flags, f"size={size}".encode()):
        raise OSError(ctypes.get_errno(), "mount")


def mount(log, path):
    """Whether small disks are permitted."""
    try:
        mounted(path, "1m")
    except OSError as error:
        log(refused=str(error))
    else:
        log(refused="")


JOBS = {job.__name__: job for job in (change, search, attempt, write, read, hold, fill, mount)}


# --- a process that ends itself at a certain point ---


def kill_at(point, count):
    """Ends the process, as `kill -9` does, when a point is reached for the n-th time."""
    left = [count]

    def reached(here):
        if here == point:
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)

    def around(place, name, before, after, when=lambda *_: True):
        given = getattr(place, name)

        def replaced(*arguments, **named):
            chosen = when(*arguments)
            if chosen:
                reached(before)
            outcome = given(*arguments, **named)
            if chosen:
                reached(after)
            return outcome

        setattr(place, name, replaced)

    class Connection(sqlite3.Connection):
        def execute(self, query, *values):
            word = query.split()[0]
            word = "checkpoint" if "wal_checkpoint" in query else word.lower()
            reached(f"before {word}")
            outcome = super().execute(query, *values)
            reached(f"after {word}")
            return outcome

        def executescript(self, query):
            half = query.index("CREATE TABLE passage")
            if point == "in create":
                super().executescript(query[:half])
                reached("in create")
            return super().executescript(query)

    connect = sqlite3.connect
    sqlite3.connect = lambda *given, **named: connect(*given, **{"factory": Connection, **named})
    words, vectors = capr.index.words, capr.index.vectors
    around(os, "link", "before link", "after link")
    around(words.WordsWriter, "__init__", "before words are opened", "after words are opened")
    around(words.WordsWriter, "commit", "before words", "after words")
    around(words, "save_state", "between words and state", "after state of words")
    around(vectors.VectorsWriter, "append", "before vectors", "after vectors")
    around(vectors, "save_state", "between vectors and state", "after state of vectors")
    around(Path, "replace", "before rename", "after rename", lambda part, _: part.name == "state.json.part")
    around(capr.index.writer, "rmtree", "before rmtree", "after rmtree")
    around(Fake, "passages", "before encoding", "after encoding")
    around(FakeDiscourse, "sentences", "before sentences", "after sentences")
    written = vectors._write

    def write(file, begin, data):
        if point == "half of an array":
            written(file, begin, data[: len(data) // 2])
            reached("half of an array")
        written(file, begin, data)
        reached("after an array")

    vectors._write = write


def main():
    """Starts processes; `start` a job, and `poll` whether one has ended."""
    vocabulary = Vocabulary.load()
    capr.search.library.annotator(False, vocabulary).annotate(make("warm", 1))
    print("ready", flush=True)
    for line in sys.stdin:
        given = json.loads(line)
        if "poll" in given:
            pid, status = os.waitpid(given["poll"], os.WNOHANG)
            print(json.dumps(os.waitstatus_to_exitcode(status) if pid else None), flush=True)
            continue
        pid = os.fork()
        if not pid:
            run(**given)
        print(pid, flush=True)


def run(job, log, **given):
    """The life of a process."""
    devnull = os.open(os.devnull, os.O_RDWR)
    os.dup2(devnull, 0)
    os.dup2(devnull, 1)
    os.dup2(os.open(f"{log}.stderr", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), 2)
    tell = Log(log)
    try:
        JOBS[job](tell, **given)
        os._exit(0)
    except BaseException:
        tell(crashed=traceback.format_exc())
        os._exit(1)


if __name__ == "__main__":
    main()
