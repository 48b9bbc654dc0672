"""Strings to tokenize: short ones mostly, of many alphabets, and some long ones. Seeded; made in
chunks, so that millions take no more memory than some thousands.

Characters are those that Unicode 16.0 has assigned: what the regular expressions of the
`tokenizers` package know (`\\P{Cn}` there). Newer ones are classed by the age of an engine's tables
and say nothing about a tokenizer. The package's own steps differ there: Digits knows 13 numbers of
Unicode 17, its regular expressions do not.
"""

import pathlib
import random
import unicodedata

from tokenizers import Regex, pre_tokenizers

VERSIONS = {154998: "16.0", 159801: "17.0", 149813: "15.1", 149186: "15.0"}
EVERYTHING = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
NOT_CHARACTERS = (0xFDD0, 0xFDEF, 0xFFFE, 0xFFFF, 0x1FFFE, 0x1FFFF, 0x10FFFE, 0x10FFFF)
LICENCES = pathlib.Path("/usr/share/common-licenses")
SPECIALS = """<|im_start|> <|im_end|> <|endoftext|> <|begin_of_text|> <|end_of_text|> <|eot_id|>
<|eot|> <|start_header_id|> <|end_header_id|> <|python_tag|> <|reserved_special_token_7|> <|eom_id|>
<|header_start|> <|header_end|> <|startoftext|> <|vision_start|> <|image_pad|> <think> </think>
<tool_call> </tool_call> <|l|> <|r|> <|im <b> <b><i> </b> [MASK] [CLS] [SEP] [UNK] [PAD] <s> </s>
<unk> <pad> <bos> <eos> <mask> <start_of_turn> <end_of_turn> <unused7> [INST] [/INST] [IMG]
[TOOL_CALLS] [AVAILABLE_TOOLS] [SYSTEM_PROMPT] [REFERENCE_DOC_1] [REFERENCE_DOC_19] <SPECIAL_20>
<extra_id_0> <table> <h1> <0x0A> <0x41>
\u00c9t\u00e9 \u0120a \u2581the \u2581 ##ing""".split() + ["  \t", "the", "\u2581\u2581", "\n\n"]
PIECES = [" ", " ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", "'s", "'t", "'re", "'LL", "'\u017f",
          "'VE", "\u2019s", "K\u212a", "1", "42", "2024", "3.14", "\u0301", "\u200d", "\u00a0",
          "\u3000", "\x00", ".", ", ", "!?", "...", "/", "//", "_", "-", "the", " the", "The",
          "THE", "ing", " and", "\u00e9", "e\u0301", "\u00fc", "\u4e2d\u6587", "\uff0c",
          "\U0001f600", "<|", "|>", "def ", "return", "();\n", "    ", "\u0627\u0644", "\u05d0",
          "A", "Z", "x", "\u0130", "\u01c5", "\u00df", "\ufb01", "\u2126", "\u1100\u1161\u11a8",
          "\ufffd", "\ufeff", "\u200b"]
SPACES = ("\t\n\v\f\r \u0085\u00a0\u1680\u180e\u2000\u2003\u2009\u200a\u2028\u2029\u202f"
          "\u205f\u3000\u200b\u2060\x1c\x1f")
MARKS = "\u0300\u0301\u0302\u0308\u030a\u0323\u0327\u0334"
EDGES = "\x00\x7f\x80\u07ff\u0800\ud7ff\ue000\ufffd\uffff\ufffe\U00010000\U0001ffff\U0010ffff"
RIGHT_TO_LEFT = [(0x590, 0x600), (0x600, 0x700), (0x700, 0x750), (0x750, 0x780), (0x8A0, 0x900),
                 (0xFB1D, 0xFE00), (0xFE70, 0xFEFF), (0x1E900, 0x1E960), (0x10800, 0x10860)]
IDEOGRAPHS = [(0x4E00, 0xA000), (0x3400, 0x4DC0), (0x3000, 0x3100), (0xAC00, 0xD7A4),
              (0xFF00, 0xFFF0), (0x3100, 0x3400), (0x20000, 0x2A6E0), (0xF900, 0xFB00)]
EMOJI = [(0x1F300, 0x1F650), (0x1F680, 0x1F700), (0x1F900, 0x1FB00), (0x2600, 0x27C0)]
JOINS = ["\u200d", "\u200d", "\ufe0f", "\ufe0e", "\u20e3", "\U0001f3fb", "\U0001f3ff", "", "", " "]


def members(pattern):
    """The code points that a regular expression of `tokenizers` matches."""
    split, found = pre_tokenizers.Split(Regex(pattern), "removed"), set()
    for start in range(0, len(EVERYTHING), 4096):
        chunk = EVERYTHING[start : start + 4096]
        text, kept = "".join(map(chr, chunk)), set()
        for _, (begin, end) in split.pre_tokenize_str(text):
            kept.update(text[begin:end])
        found.update(c for c in chunk if chr(c) not in kept)
    return found


class Alphabets:
    def __init__(self):
        known = members(r"\P{Cn}")
        private = sum(unicodedata.category(chr(c)) in ("Co", "Cc") for c in known)
        self.version = VERSIONS.get(len(known) - private, "?")
        self.count = len(known) - private
        self.known = sorted(known | set(NOT_CHARACTERS))
        rows = {}
        for c in self.known:
            rows.setdefault(c >> 7, []).append(chr(c))
        planes_15_16 = [r for r in rows if r >= 0xF0000 >> 7]
        self.rows = [rows[r] for r in rows if r not in planes_15_16] + [rows[planes_15_16[0]]]
        self.marks = [chr(c) for c in members(r"\p{M}")]
        self.numbers = [chr(c) for c in members(r"\p{N}")]
        self.letters = [chr(c) for c in members(r"\p{Lu}") | members(r"\p{Lt}")]
        for name, blocks in (("right_to_left", RIGHT_TO_LEFT), ("ideographs", IDEOGRAPHS),
                             ("emoji", EMOJI)):
            lists = [[chr(c) for c in range(a, b) if c in known] for a, b in blocks]
            setattr(self, name, [x for x in lists if x])
        for name in ("marks", "numbers", "letters"):
            getattr(self, name).sort()


def lines_of(paths):
    lines = []
    for path in paths:
        for line in pathlib.Path(path).read_text("utf-8", "replace").splitlines(True):
            if line.strip() and len(line) < 400:
                lines.append(line)
    return lines


class Maker:
    def __init__(self, seed, hand_made=()):
        self.rng = random.Random(seed)
        self.alphabets = Alphabets()
        self.known = set(map(chr, self.alphabets.known))
        self.prose = lines_of(sorted(p for p in LICENCES.iterdir() if p.is_file()))
        library = pathlib.Path(random.__file__).parent
        self.code = lines_of(sorted(library.glob("[a-j]*.py"))[:60])
        self.hand_made = [t for t in hand_made if set(t) <= self.known]
        self.sorts = [self.row, self.mixed, self.pieces, self.line, self.line, self.spoilt,
                      self.source, self.faces, self.accents, self.right_to_left, self.far_east,
                      self.digits, self.spaces, self.specials, self.cut_specials, self.quotes,
                      self.edges, self.cases]

    def length(self):
        return self.rng.choice((1, 2, 2, 3, 3, 4, 5, 6, 8, 10, 14, 24))

    def row(self):
        return "".join(self.rng.choices(self.rng.choice(self.alphabets.rows), k=self.length()))

    def mixed(self):
        rng, rows = self.rng, self.alphabets.rows
        return "".join(rng.choice(row) for row in rng.choices(rows, k=self.length()))

    def pieces(self):
        rng = self.rng
        return "".join(p * rng.choice((1, 1, 1, 1, 2, 3, 9))
                       for p in rng.choices(PIECES, k=1 + self.length() // 3))

    def line(self):
        line = self.rng.choice(self.prose)
        begin = self.rng.randrange(len(line))
        return line[begin : begin + self.length() * self.rng.choice((1, 1, 3))]

    def source(self):
        line = "".join(self.rng.choices(self.code, k=self.rng.choice((1, 1, 2))))
        begin = self.rng.choice((0, self.rng.randrange(len(line))))
        return line[begin : begin + self.length() * self.rng.choice((1, 1, 3))]

    def spoilt(self):
        rng, text = self.rng, list(self.line())
        for _ in range(rng.randint(1, 4)):
            added = rng.choice((PIECES, rng.choice(self.alphabets.rows)))
            text.insert(rng.randint(0, len(text)), rng.choice(added))
        return "".join(text)

    def faces(self):
        rng, out = self.rng, []
        for _ in range(1 + self.length() // 4):
            out.append(rng.choice(rng.choice(self.alphabets.emoji)) + rng.choice(JOINS))
            if rng.random() < 0.2:
                flags = range(rng.randint(1, 3))
                out.append("".join(chr(0x1F1E6 + rng.randrange(26)) for _ in flags))
            if rng.random() < 0.1:
                out.append("\U0001f3f4\U000e0067\U000e0062\U000e007f")
        return "".join(out)

    def accents(self):
        rng, out = self.rng, []
        for _ in range(1 + self.length() // 4):
            row = rng.choice(self.alphabets.rows)
            base = rng.choice(rng.choice(("aeiouAEOn\u00e9\u01b0\u1ea1", row, " ")))
            marks = rng.choice((self.alphabets.marks, MARKS))
            out.append(base + "".join(rng.choices(marks, k=rng.choice((0, 1, 1, 2, 3, 5)))))
            if rng.random() < 0.1:
                out.append("".join(chr(rng.randint(0x1100, 0x11FF)) for _ in range(3)))
        return "".join(out)

    def scripts(self, blocks, between):
        rng, out = self.rng, []
        for _ in range(1 + self.length() // 4):
            out.append("".join(rng.choices(rng.choice(blocks[: rng.randint(1, len(blocks))]),
                                           k=rng.randint(1, 6))))
            out.append(rng.choice(between))
        return "".join(out)

    def right_to_left(self):
        between = (" ", " ", ", ", "\u060c ", " 12 ", "\u200f", "\u202e", " abc ", "\n", "")
        return self.scripts(self.alphabets.right_to_left, between)

    def far_east(self):
        between = ("", "", "\uff0c", "\u3002", "\u3000", " ", "abc", "12", "\n", "\uff01")
        return self.scripts(self.alphabets.ideographs, between)

    def digits(self):
        rng, out = self.rng, []
        for _ in range(1 + self.length() // 4):
            alphabet = rng.choice(("0123456789", "0123456789", self.alphabets.numbers))
            out.append("".join(rng.choices(alphabet, k=rng.randint(1, 8))))
            out.append(rng.choice((" ", "", "st", "\n") + tuple(".,-ex%/:\u00b2")))
        return "".join(out)

    def spaces(self):
        rng, out = self.rng, []
        for _ in range(1 + self.length() // 4):
            alphabet = rng.choice((" ", " ", "\n", " \n", "\r\n", "\t", "\t ", SPACES))
            out.append("".join(rng.choices(alphabet, k=rng.choice((1, 2, 3, 4, 8, 17, 33)))))
            out.append(rng.choice(("", "a", "The", "1", "!", "\u4e00", "//", "\u2581", "\u0301")))
        return "".join(out)

    def specials(self):
        rng, out = self.rng, []
        for _ in range(rng.randint(1, 4)):
            out += [rng.choice(PIECES + [""] * 30), rng.choice(SPECIALS)]
        return "".join(out + [rng.choice(PIECES)])

    def cut_specials(self):
        rng, out = self.rng, []
        for _ in range(rng.randint(1, 4)):
            special = rng.choice(SPECIALS)
            begin, end = sorted((rng.randint(0, len(special)), rng.randint(0, len(special))))
            cut = rng.choice((special[begin:], special[:end], special[begin:end], special))
            out.append(rng.choice((cut, cut, cut.upper(), cut + special)))
            out.append(rng.choice(("", "", " ", "\u0338")))
        return "".join(out)

    def quotes(self):
        rng, out = self.rng, []
        for _ in range(1 + self.length() // 4):
            out.append(rng.choice(("it", "IT", "don") + tuple("\u00e9\u4e00 7'\u03a9_")))
            out.append(rng.choice(("'", "'", "'", "\u2019", "''")))
            out.append("".join(rng.choices("stmdrevlSTMDREVL\u017f\u212ax ", k=rng.randint(1, 3))))
        return "".join(out)

    def edges(self):
        rng = self.rng
        return "".join(rng.choice(rng.choice((EDGES, "ab \n"))) for _ in range(self.length()))

    def cases(self):
        rng, out = self.rng, []
        for _ in range(1 + self.length() // 4):
            word = rng.choice(self.prose).strip()[: rng.randint(1, 9)]
            out.append(rng.choice((word, word.upper(), word.title(), word.swapcase(),
                                   rng.choice(self.alphabets.letters), word.replace(" ", ""))))
            out.append(rng.choice(("", " ", "_", "-", ".", "\u02b0", "\u01c5")))
        return "".join(out)

    def long(self):
        rng = self.rng
        size = rng.choice((300, 1000, 3000))
        part = rng.choice(self.sorts)() or "a"
        if rng.random() < 0.5:
            return (part * (size // len(part) + 1))[:size]
        out = part
        while len(out) < size:
            out += rng.choice(self.sorts)()
        return out[:size]

    def one(self):
        if self.rng.random() < 0.0005:
            return self.long()
        return self.rng.choice(self.sorts)()

    def chunk(self, count):
        """The next `count` strings; the first chunk begins with those made by hand."""
        out, self.hand_made = self.hand_made[:count], self.hand_made[count:]
        while len(out) < count:
            text = self.one()
            # Python's str.upper() and the standard library's files may know newer characters.
            if not self.known.issuperset(text):
                text = "".join(c for c in text if c in self.known)
            out.append(text)
        return out
