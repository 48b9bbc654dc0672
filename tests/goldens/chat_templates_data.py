"""Conversations and snippets for make_chat_templates.py."""


def user(content):
    return {"role": "user", "content": content}


def assistant(content, **more):
    return {"role": "assistant", "content": content, **more}


def system(content):
    return {"role": "system", "content": content}


def call(name, arguments, identity="abcdefghi"):
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def result(content, identity="abcdefghi"):
    return {"role": "tool", "tool_call_id": identity, "name": "lookup", "content": content}


WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a place, \"now\" or later.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "A city, e.g. Zürich or 東京"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
                "days": {"type": "integer", "description": "1 < days <= 14", "default": 3},
            },
            "required": ["city"],
        },
    },
}
ROUTE = {
    "type": "function",
    "function": {
        "name": "plan_route",
        "description": "Plans a route & its stops",
        "parameters": {
            "type": "object",
            "properties": {
                "stops": {"type": "array", "description": "In order",
                          "items": {"type": "object",
                                    "properties": {"lat": {"type": "number"},
                                                   "lon": {"type": "number"},
                                                   "tags": {"type": "array", "items": {"type": "string"}}},
                                    "required": ["lat", "lon"]}},
                "limits": {"oneOf": [{"type": "integer", "default": 5}, {"type": "string", "enum": ["none", "few"]},
                                     {"type": "boolean"}], "description": "", "default": "none"},
                "mode": {"type": ["string", "null"]},
                "options": {"type": "object", "properties": {"avoid": {"type": "array"}, "fast": {"type": "boolean"}}},
                "notes": {"type": "object", "additionalProperties": {"type": "number"}},
                "ratio": {"type": "number", "default": 1.0},
                "matrix": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}, "nullable": True},
            },
            "required": ["stops", "mode"],
        },
    },
}
CLOCK = {"type": "function",
         "function": {"name": "clock", "description": "Tells the time",
                      "parameters": {"type": "object", "properties": {}}}}

NESTED = {"city": "Zürich", "days": 2, "opts": {"a": [1, 2.5, None, True, {"b": "x\"y\\z\n"}], "e": {}, "l": []},
          "big": 12345678901, "tiny": 1e-07, "huge": 1e22, "html": "<b>&'</b>"}

# name, messages, tools, further variables
CONVERSATIONS = [
    ("one question", [user("What is the capital of France?")], None, None),
    ("system and question", [system("Be brief.\nBe kind."), user("Hello there!")], None, None),
    ("three turns", [user("One?"), assistant("1"), user("Two?"), assistant("2"), user("Three?")], None, None),
    ("three turns, system, spaces", [system("  padded  "), user(" a \n"), assistant("\n\nb\t"), user("  c")], None, None),
    ("ends with assistant", [user("Hi"), assistant("Hello.")], None, None),
    ("empty texts", [system(""), user(""), assistant(""), user("")], None, None),
    ("unicode", [system("Réponds en français 🇫🇷"), user("你好，世界 \u200b\u00a0!"), assistant("שלום 👩‍👩‍👧‍👦 é"), user("\u2028x\ufeff")], None, None),
    ("only system", [system("alone")], None, None),
    ("no messages", [], None, None),
    ("wrong order", [assistant("first"), user("second"), user("third")], None, None),
    ("unknown role", [user("q"), {"role": "critic", "content": "meh"}], None, None),
    ("late system", [user("q"), system("late"), user("r")], None, None),
    ("missing content", [user("q"), {"role": "assistant"}, user("r")], None, None),
    ("null content", [user("q"), assistant(None), user("r")], None, None),
    ("parts", [system([{"type": "text", "text": "S"}]), user([{"type": "text", "text": " Look: "}, {"type": "image"}, {"type": "text", "text": "what?"}]), assistant("A cat.")], None, None),
    ("think tags", [user("2+2?"), assistant("<think>\nsum them\n</think>\n\n4"), user("3+3?"), assistant("<think>again</think>6")], None, None),
    ("reasoning fields", [system("/no_think be terse"), user("why?"), assistant("because", reasoning_content="\nlong thought\n", thinking="hm")], None, {"enable_thinking": False, "reasoning_effort": "high"}),
    ("tool offered", [user("Weather in Zürich?")], [WEATHER], None),
    ("tools offered, system", [system("Use tools."), user("Plan it.")], [WEATHER, ROUTE, CLOCK], None),
    ("one call", [user("Weather?"), assistant(None, tool_calls=[call("get_weather", NESTED)]), result("{\"t\": 21.5}"), assistant("It is 21.5 °C."), user("Thanks")], [WEATHER], None),
    ("call without result", [system("S"), user("Go"), assistant("", tool_calls=[call("clock", {})])], [CLOCK], None),
    ("two calls", [user("Both!"), assistant("Looking.", tool_calls=[call("get_weather", {"city": "Rom"}, "id0000001"), call("plan_route", {"stops": [{"lat": 1, "lon": -2.0}], "mode": None}, "id0000002")]), result("sunny", "id0000001"), result("no route", "id0000002")], [WEATHER, ROUTE], None),
    ("result as object", [user("Go"), assistant("", tool_calls=[call("clock", {"zone": "UTC"})]), result({"hour": 12, "minute": 5, "zone": None})], [CLOCK], {"tools_in_user_message": False}),
    ("result as list", [user("Go"), assistant("", tool_calls=[call("clock", {"zone": "UTC"})]), result([{"type": "text", "text": "noon"}, {"output": 3}])], [CLOCK], None),
    ("arguments as text", [user("Go"), assistant("", tool_calls=[call("get_weather", "{\"city\": \"Oslo\", \"n\": [1, 2.0]}")]), result("ok")], [WEATHER], None),
    ("result without call", [user("q"), result("stray"), user("r")], None, None),
    ("short id", [user("q"), assistant(None, tool_calls=[call("clock", {}, "1")]), result("x", "1")], [CLOCK], None),
    ("quotes and braces", [system("{{ not a tag }} {% nor this %}"), user("\"q\" 'a' {\"k\": 1} <|im_end|> &lt; \\n"), assistant("`x`\r\n\r\n\r\ny\x7f\x00z")], None, None),
    ("numbers as content", [user(5), assistant(2.50), user(True)], None, None),
    ("developer", [{"role": "developer", "content": "Rules."}, user("q"), assistant("<|channel|>x"), user("r")], [ROUTE], {"model_identity": "You are X.", "date_string": "1 Jan 2025"}),
    ("documents", [user("Cite.")], None, {"documents": [{"doc_id": 1, "title": "T", "text": "Text one"}, {"doc_id": "b", "text": "Zwei"}], "controls": {"length": "short", "n": 1}}),
    ("named users", [{"role": "user", "name": "Ann", "content": "hi"}, {"role": "user", "name": "", "content": "ho"}, assistant("x", name="bot")], None, None),
    ("long", [m for i in range(6) for m in (user(f"question {i} " + "word " * i), assistant(f"answer {i}"))], None, None),
]

SNIPPET_VARIABLES = {
    "messages": [],
    "s": "Hello World", "e": "", "u": "Zürich 東京 👍 ß", "n": 7, "neg": -3, "f": 2.5, "t": True, "no": None,
    "l": [3, 1, 2], "ll": [[1, 2], [3]], "d": {"b": 1, "a": [1, {"x": None}], "items": "own", "C": 2.0},
    "ms": [{"role": "user", "content": "x", "n": 2}, {"role": "tool", "content": None, "n": 1}, {"role": "user", "n": 3}],
    "ws": " \t a  b\u00a0\n", "names": ["bob", "Alice", "carol", "alice"],
}

EXPRESSIONS = """
1|2+3*4-5|-2**2|2**3**2|2**-1|7//2|-7//2|7%3|-7%3|7%-3|7.5//2|-7.5%2|7/2|4/2|1/0|1//0|1%0|1.0/0|2**62
-9223372036854775807-1|0x1F|0b101|0o17|1_000|1.5e3|1e-5|1e16|1e15|123456789.125|0.1+0.2|1e22|5e-324|1.0|-0.0|1e100
'a'+'b'|'a'~1~none~true~2.0|'a'*3|3*'ab'|'a'*-1|[1]*3|'a'+1|1+'a'|none+1|[1]+[2]|(1,)+(2,)|[1]+(2,)|true+true|true|false|none|True|None
'%s and %d'%('x',3)|'%5.2f|%-4d|%04d|%+d|%x|%%'%(3.14159,7,42,5,255)|'%s'%n|'%(a)s %(C)s'%d|'%d'%'x'|'%s %s'%('x',)|'%r'%'q'
1<2<3|1<3<2|1==1.0|1=='1'|'a'<'b'|'a'<1|[1,2]<[1,3]|none<1|none==none|true==1|'Z'<'a'|'é'>'z'|(1,2)==[1,2]|{'a':1}=={'a':1.0}|1!=2|not 1==2
1 in [1,2]|3 not in l|'lo' in s|'x' in d|'b' in d|1 in 'a'|none in [none]|1 in 5|'a' in undefinedx|[1,2] in ll|'' in ''|1 in (1,2)|1 in range(3)
n and s|no or 'x'|'' or 0|1 and 2 or 3|not no|not not s|e and undefinedx.y|n or undefinedx.y|1 or 1/0
'y' if n else 'n'|'y' if no|('y' if no) is defined|1 if no else 2 if e else 3|(1 if t else 2)+1
s[0]|s[-1]|s[100]|s[1:4]|s[:-2]|s[-5:]|s[::-1]|s[::2]|s[10:2:-3]|s[5:1]|s[:0]|s[::0]|u[1]|u[7]|u[::-1]|u[-4:]|u[3:9]|s['x']|l[0]|l[-1]|l[9]|l[1:]|l[::-1]|l[:-1]|l[-2:]|l['0']|l[1.0]|l[true]|(1,2,3)[1:]|range(5)[1:3]|range(5)[-1]
no[1:]|d[1:]|undefinedx[1:]|undefinedx.a|undefinedx['a']|undefinedx|undefinedx is defined|no.x|no.x.y|5 .x|n['x']|d.zz|d.zz.y|d['zz']|d.b|d['b']|d.items|d['items']|d.get('b')|d.get('q')|d.get('q', 9)|d.items()|d.keys()|d.values()|d.items()|list|d.a[1].x|d.a.1.x|ms.0.role|ms[0]['role']|d[l]|d[1,2]
[1,'a',none,true,2.0,[],{},(),(1,),(1,2)]|{'k':'v',1:2,none:3,'n':{'m':[1]}}|{1:1,1.0:2,true:3}|{[1]:2}|["it's",'say "hi"','both \\'"','\\n\\t\\\\\\x01é\\u200b\\U0001F44D']|[undefinedx]|range(3)|range(1,10,3)|range(0)|(1)|()|1,2|[[],[[]],]|{'a':1,}
'\\x41\\u00e9\\101\\q\\''|"a\\"b"|'a' 'b'|'tab\\there'|'\\ud83d'|'new
line'
namespace(a=1)|namespace(a=1).a|namespace({'a':2},b=3).b|namespace(a=1).z|namespace(_a=1)|dict(a=1,b=2)|dict([('x',1)])|dict({'q':1},r=2)|range(2,5)|list|range(5,0,-2)|list|range(10**9)|range('a')|range(0,10,0)|raise_exception('boom '~n)|raise_exception()
strftime_now('%Y-%m-%d')|strftime_now('%d %b %Y %H:%M:%S %j %A %B %a %y %I %p %-d %e %%')|strftime_now('%F %T')
n|string|n|length|s|length|u|length|d|length|undefinedx|length|no|length|l|count|(l|map('string'))|length
s|upper|s|lower|u|upper|u|lower|'ßa'|capitalize|'hello wORLD foo-bar (baz'|title|'they\\'re bill\\'s'.title()|s|capitalize|n|upper|undefinedx|upper|no|upper|'ǅx'|lower
ws|trim|ws|trim(' ')|'xxaxx'|trim('x')|n|trim|undefinedx|trim|no|trim|'\\u3000 a\\u2003'|trim|'a'|trim(1)
undefinedx|default('D')|no|default('D')|no|default('D',true)|e|d('D',boolean=true)|e|d('D')|undefinedx|default|undefinedx.x|default('D')|d.zz|default(1)+1
l|join|l|join(', ')|names|join(d='-')|ms|join(',',attribute='role')|s|join('.')|d|join('/')|no|join|undefinedx|join('x')|[1,[2],none]|join('|')
l|list|s|list|d|list|undefinedx|list|no|list|(1,2)|list|u|list
d|items|list|no|items|undefinedx|items|list|d|dictsort|d|dictsort(true)|d|dictsort(by='value')|{'a':3,'B':1,'c':2}|dictsort(false,'value')|{'a':3,'B':1}|dictsort(reverse=true)|{1:2,'a':3}|dictsort|l|dictsort
l|sort|l|sort(reverse=true)|names|sort|names|sort(case_sensitive=true)|ms|sort(attribute='n')|map(attribute='n')|list|ms|sort(attribute='role,n')|map(attribute='n')|list|[1,'a']|sort|names|sort(true,true)|[[2,1],[1,5]]|sort|undefinedx|sort
names|unique|list|names|unique(case_sensitive=true)|list|[1,1.0,true,2]|unique|list|ms|unique(attribute='role')|map(attribute='n')|list|[[1],[1]]|unique|list
l|min|l|max|names|min|names|max(case_sensitive=true)|[]|min|[]|max is defined|ms|max(attribute='n')|[1,'a']|max|l|sum|ms|sum(attribute='n')|l|sum(start=10)|['a']|sum|[1.5,2]|sum|[]|sum
l|first|l|last|s|first|s|last|e|first|[]|first|[]|last|d|first|d|last|undefinedx|first|undefinedx|last|(l|map('string'))|last|(l|select)|first|no|first
l|reverse|list|s|reverse|u|reverse|d|reverse|list|l|reverse|length|no|reverse|(1,2)|reverse|list
ms|map(attribute='role')|list|ms|map(attribute='content')|list|ms|map(attribute='content',default='-')|list|names|map('upper')|join(' ')|l|map('string')|list|l|map('nope')|list|l|map|list|ms|map('length')|list|names|map('replace','b','B')|list|no|map('x')|list|5|map('x')|list|ll|map('join','-')|list|ms|map(attribute='n',default=0)|sum
ms|selectattr('content')|list|length|ms|selectattr('role','equalto','user')|map(attribute='n')|list|ms|rejectattr('role','==','user')|list|ms|selectattr('n','gt',1)|list|length|ms|selectattr('n','in',[1,3])|map(attribute='role')|list|ms|selectattr('content','defined')|list|length|ms|selectattr('content','none')|list|length|ms|selectattr|list|l|select('odd')|list|l|reject('odd')|list|l|select('nope')|list|[0,1,'',none,'x']|select|list|[0,1]|reject|list|l|select('>',1)|list|ms|selectattr('x.y')|list|ms|selectattr('role.z')|list|no|select|list
s|replace('o','0')|s|replace('o','0',1)|s|replace('','-')|'aaa'|replace('aa','b')|n|replace(7,8)|s|replace('x')|s.replace('l','L',2)|s.replace('','.')|u|replace('東','西')|s.replace('l',1)
'42'|int|'x'|int|'x'|int(5)|'42.9'|int|3.99|int|-3.99|int|'0x1A'|int(0,16)|'101'|int(base=2)|' 7 '|int|none|int|true|int|undefinedx|int|'1_000'|int|'1e3'|int|''|int|[]|int|'12abc'|int(default=-1)|'+5'|int|'-5'|int
'4.5'|float|'x'|float|'x'|float(1.5)|3|float|none|float|'1e3'|float|' 2 '|float|'inf'|float|'nan'|float|-3|abs|-3.5|abs|'a'|abs|true|abs
2.5|round|3.5|round|2.567|round(2)|2.5|round(0,'ceil')|2.44|round(1,'floor')|42|round|2.675|round(2)|1234|round(-2)|1234.5|round(-2)|-2.5|round|'x'|round|1.005|round(2)|2.5|round(method='nope')
'a\\nb\\n\\nc'|indent|'a\\nb'|indent(2,true)|'a\\n\\nb'|indent(width=3,blank=true)|'a\\nb'|indent('> ')|n|indent|''|indent|'a\\n'|indent
d|tojson|ms|tojson|d|tojson(indent=2)|d|tojson(sort_keys=true)|u|tojson|u|tojson(ensure_ascii=true)|l|tojson(separators=(',',':'))|[]|tojson(indent=2)|{}|tojson(indent=1)|'<a href="x">&\\'</a>'|tojson|'\\x00\\x1f\\x7f\\u2028'|tojson|1.0|tojson|1e-7|tojson|(1,2)|tojson|undefinedx|tojson|range(2)|tojson|{1:2,none:3,true:4,1.5:5}|tojson|{(1,2):3}|tojson|no|tojson|t|tojson|(l|map('string'))|tojson|d|tojson(indent='--')|d|tojson(indent=0)|d.items()|tojson|[1e16,1e15,123456789012345680.0]|tojson|ms|tojson(true)|{'b':1,2:1}|tojson(sort_keys=true)|namespace(a=1)|tojson
'{"a": [1, 2.5, null], "b": "\\\\u00e9"}'|from_json|'{"a":'|from_json|'[1]'|from_json|length|'1'|from_json+1|'{"a":1,"a":2}'|from_json|5|from_json
s|safe|('<b>'|safe)+'<i>'|'<b>&"\\''|e|'<b>'|escape|e|'<'+('>'|safe)|('<b>'|safe)~'<i>'|n|e|s|wordcount|'a b-c d_e'|wordcount|'%s-%s'|format(1,'x')|'%(a)s'|format(a=3)|'<b>'|safe|upper
l|batch(2)|list|l|batch(2,'x')|list|l|nope|1|nope(2)
n is number|t is number|f is number|s is number|n is integer|t is integer|f is integer|f is float|n is float|s is string|n is string|l is sequence|d is sequence|s is sequence|n is sequence|l is iterable|s is iterable|n is iterable|d is mapping|l is mapping|undefinedx is iterable|undefinedx is sequence|undefinedx is mapping|no is none|s is none|n is not none|t is boolean|n is boolean|t is true|1 is true|false is false|0 is false|undefinedx is undefined|d.zz is undefined|d.zz is not defined|namespace() is mapping|range(3) is sequence|(l|map('string')) is sequence|(l|map('string')) is iterable|d.items() is sequence|range is callable|n is callable|undefinedx is callable|s.upper is callable
n is odd|n is even|neg is odd|f is odd|n is divisibleby 7|n is divisibleby(2)|n is eq 7|n is ne(7)|n is gt 3|n is lt 3|n is ge 7|n is le 6|n is in [7]|n is in(l)|n is equalto 7.0|s is lower|'abc' is lower|'ABC' is upper|'A1' is upper|'1' is upper|n is nope|n is sameas 7|no is sameas none|n is greaterthan 8|n is lessthan 8|s is string and n is number|s is not string or t|n is defined and n is gt 3|'upper' is filter|'nope' is filter|'odd' is test|s is eq|n is odd is even|n == 7 is true
s.upper()|s.lower()|s.title()|s.capitalize()|s.split()|s.split(' ')|s.split('o',1)|s.split('o')[-1]|'a,b,,c'.split(',')|'a,b'.split('')|ws.split()|' a b  c '.split(none,1)|'a b c'.split(maxsplit=1)|''.split()|''.split(',')|'a--b--c'.rsplit('--',1)|'a b c'.rsplit(none,1)|'a b'.rsplit()|s.split(1)
ws.strip()|'xxaxx'.strip('x')|'xyaxy'.lstrip('xy')|'xyaxy'.rstrip('xy')|ws.lstrip()|ws.rstrip()|'a'.strip(none)|'a'.strip(1)|s.startswith('He')|s.endswith('ld')|s.startswith(('x','H'))|s.endswith(['d'])|s.startswith('')|s.startswith()|s.startswith(1)|'abc'.removeprefix('a')|'abc'.removesuffix('bc')|'abc'.removesuffix('')
', '.join(names)|'-'.join('abc')|','.join([1])|','.join(d)|''.join([])|s.find('o')|s.find('zz')|s.rfind('o')|s.index('W')|s.index('zz')|u.find('京')|s.count('l')|s.count('')|'aaa'.count('aa')|'a\\nb\\r\\nc\\x0bd\\n'.splitlines()|'a\\nb'.splitlines(true)|''.splitlines()|'12'.isdigit()|'a1'.isdigit()|''.isdigit()|'ab'.isalpha()|'a1'.isalnum()|' \\t'.isspace()|'AB'.isupper()|'ab'.islower()
'{} {}'.format(1,'a')|'{1}{0}'.format('a','b')|'{x}'.format(x=n)|'{:.2f}'.format(3.14159)|'{:>5}|{:<5}|{:^5}'.format('a','b','c')|'{:05d}'.format(42)|'{0!r}'.format('q')|'{{}}'.format()|'{}'.format()|'{:d}'.format('x')|'{:*^7}'.format('mid')|'{:+}'.format(3)|'{:5}'.format(3)|'{}'.format(none)|'{'.format()|'{:x}'.format(255)|'{:.1%}'.format(0.256)
s.nope()|s.nope|s.__class__|s.encode|d.__class__|s.upper|l.index(1)|l.index(9)|l.count(3)|(1,2,1).count(1)|undefinedx()|s()|n()|d.b()
l is defined and l|d.items()|list|length|(d|items|list)[0]|(d|items|list)[0][1]|d|length > 3|s|length + 1|-n|abs|-l|+n|+s|not s|length|n|string + 'x'|n ~ s|upper|(1,2)|length|{'a':{'b':{'c':5}}}.a.b.c|ll[0][1]|ll|sum(start=[])
s.split()|map('lower')|list|join('_')|[s,u]|map('length')|list|dict(a=1,**d)|dict(**{'z':1})|dict(**{1:1})|range(*[1,4])|list|namespace(**{'q':1}).q|range(1,*[4])|list|range(**{'a':1})|dict(a=1,a=2)|dict(b=2,**{'b':3})
(|)|1 +|[1|{1}|{'a'}|'abc|a b|1 2|x..y|x.|x[|x[]|f(a=|f(a=1,2)|f(**d,1)|is|in|not|@|$x|`a`|a = 1|a == = b|a ? b : c|a && b|!a|a++|1.2.3|1.|.5|007|0x|1__0|999999999999999999999|{{ 1 }}|%}
""".strip("\n")


def expressions():
    """Lines hold several expressions between bars; a bar followed by a filter's name is a filter."""
    import re
    filters = ("abs batch capitalize count d default dictsort e escape first float format from_json indent int items "
               "join last length list lower map max min nope reject rejectattr replace reverse round safe select "
               "selectattr sort string sum title tojson trim unique upper wordcount attr").split()
    found = []
    for line in re.split(r"\n(?=\S)", EXPRESSIONS):
        piece = ""
        quote = None
        for i, c in enumerate(line):
            if quote:
                quote = None if c == quote and line[i - 1] != "\\" else quote
            elif c in "'\"":
                quote = c
            elif c == "|":
                name = re.match(r"\w*", line[i + 1:]).group()
                after = line[i + 1 + len(name):][:1]
                if not (name in filters and after in "|()[ +*,=" and name != "d" or (name == "d" and after == "(")):
                    found.append(piece)
                    piece = ""
                    continue
            piece += c
        found.append(piece)
    return [piece for piece in found if piece]


STATEMENTS = [
    "", "x", "\n", "x\n", "x\n\n", "\r\nx\r\n", "{{ 1 }}\n{{ 2 }}\n", "{{- 1 -}} a {{ 2 -}} \n b", "a {{- 1 }} b {{+ 2 }}",
    "{% if true %}\nyes\n{% endif %}\nrest", "  {% if true %}  \n  yes\n  {% endif %}\n", "a  {% if true %}b{% endif %}", "\t{% if true -%}\n x {%- endif %}\n\ny",
    "  {%+ if true %}x{% endif %}", "{% if true +%}\nx{% endif %}", "x {#- c -#} y", "  {# c #}\nz", "a{# multi\nline #}\nb", "{#", "{# a", "{#}", "{#-#}x", "{#- -#} x", "{% raw %}\n {{ x }}{% endraw %}\n", "{%- raw -%} a {%- endraw -%} b",
    "{% raw %}{% endraw", "{% raw %}x", "{%raw%}{{{%endraw%}", "  {% raw %}  {% endraw %}  ", "{% raw +%}x{% endraw %}", "{% raw %}a\n   {% endraw %}b", "{{ '{{' }}{{ \"}}\" }}", "{{ {'a': {'b': 1}}['a'] }}", "{{ {} }}", "{{}}", "{{ }}", "{%%}", "{% %}", "{{", "{%", "{% if", "}} %} #}", "{ { } }", "{{ 1 }", "{{ 1 %}", "{% if true }}x",
    "{% if n %}a{% elif s %}b{% else %}c{% endif %}", "{% if no %}a{% elif e %}b{% else %}c{% endif %}", "{% if no %}a{% endif %}b", "{% if %}{% endif %}", "{% if n: %}x{% endif %}", "{% if n %}", "{% endif %}", "{% else %}", "{% if n %}{% for x in l %}{% endif %}{% endfor %}", "{% if n if s else e %}x{% endif %}", "{% if n, %}t{% endif %}",
    "{% for x in l %}{{ x }}{{ ',' if not loop.last }}{% endfor %}", "{% for x in [] %}a{% else %}b{% endfor %}", "{% for x in l if x > 1 %}{{ loop.index }}/{{ loop.length }}={{ x }} {% endfor %}", "{% for x in l if x > 9 %}{% else %}none{% endfor %}", "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k in d %}{{ k }}{% endfor %}",
    "{% for k, v in d|dictsort %}{{ k }}{% endfor %}", "{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "{% for a, b in [1] %}{% endfor %}", "{% for a, b in [(1, 2, 3)] %}{% endfor %}", "{% for a, b in ['xy'] %}{{ a }}{{ b }}{% endfor %}", "{% for x in no %}{% endfor %}", "{% for x in undefinedx %}a{% else %}b{% endfor %}", "{% for x in n %}{% endfor %}", "{% for c in s[:3] %}{{ c }}.{% endfor %}", "{% for x in 1, 2 %}{{ x }}{% endfor %}", "{% for x in l, %}{{ x }}{% endfor %}",
    "{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}", "{% break %}", "{% for x in l %}{% set q %}a{% break %}b{% endset %}{{ q }}{% endfor %}z", "{% for x in l %}{% generation %}{% break %}{% endgeneration %}{% endfor %}", "{% macro m() %}{% break %}{% endmacro %}", "{% for x in l %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}", "{% for x in l %}{% else %}{% break %}{% endfor %}",
    "{% for x in range(3) %}{% for y in range(x) %}{{ loop.index0 }}{{ loop.revindex }}{% endfor %}|{{ loop.first }}{% endfor %}", "{% for x in l %}{{ loop.previtem }}<{{ x }}<{{ loop.nextitem }} {% endfor %}", "{% for x in l %}{{ loop.cycle('a', 'b') }}{{ loop['index'] }}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}", "{% for x in l %}{{ loop.cycle() }}{% endfor %}", "{% for x in l %}{{ loop.nope is defined }}{% endfor %}{{ loop is defined }}", "{{ loop }}", "{% for loop in l %}{% endfor %}", "{% for x in l %}{{ loop.changed(x > 1) }} {% endfor %}", "{% for x in l %}{{ loop|length }}{% endfor %}",
    "{% set x = 1 %}{% for i in l %}{{ x }}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}", "{% set ns = namespace(x=0) %}{% for i in l %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}", "{% set d.x = 1 %}", "{% set undefinedx.x = 1 %}", "{% set ns = namespace() %}{% set ns._x = 1 %}", "{% set ns = namespace() %}{% set ns.a, ns.b = 1, 2 %}{{ ns.a }}{{ ns.b }}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a, b = l %}", "{% set (a, b) = (1, 2) %}{{ b }}", "{% set a = 1, 2 %}{{ a }}", "{% set a %}", "{% set 1 = 2 %}", "{% set a.b.c = 1 %}", "{% set a[0] = 1 %}", "{% set true = 1 %}", "{% set %}x{% endset %}", "{% set x %} a {% endset %}[{{ x }}]", "{% set x | trim | upper %} a {% endset %}[{{ x }}]", "{% set x | replace('a', 'b') %}aa{% endset %}{{ x }}", "{% set x %}{% set y = 1 %}{% endset %}{{ y is defined }}", "{% if true %}{% set x = 5 %}{% endif %}{{ x }}", "{% if false %}{% set n = 5 %}{% endif %}{{ n }}",
    "{% macro m(a, b=2, c=b) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, c=5) }} {{ m(b=1, a=0) }} {{ m() }}", "{% macro m(a) %}{{ a is defined }}{% endmacro %}{{ m() }}{{ m(1) }}", "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{% endmacro %}{{ m(b=1) }}", "{% macro m(a) %}{% endmacro %}{{ m(1, a=1) }}", "{% macro m(a, a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a=1, b) %}{% endmacro %}", "{% macro m %}{% endmacro %}", "{% macro m() %}x", "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}", "{{ m() }}{% macro m() %}x{% endmacro %}", "{% macro m() %}{{ x }}{% endmacro %}{% set x = 1 %}{{ m() }}{% set x = 2 %}{{ m() }}", "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}", "{% macro m() %}{% set x = 1 %}{% endmacro %}{{ m() }}{{ x is defined }}", "{% macro m(x) %}{{ x|tojson }}{% endmacro %}{{ m(d) }}", "{% macro m() %}  a  {% endmacro %}[{{ m()|trim }}]", "{% macro m(s) %}{{ s }}{% endmacro %}{{ m('<')|e }}{{ m('a') + 'b' }}{{ m('x') is string }}", "{% for i in l %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}", "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, x=2) }}", "{% macro m(a) %}{{ varargs }}{% endmacro %}{{ m(1, 2, 3) }}", "{% macro m(a) %}{{ kwargs }}{% endmacro %}{{ m(b=2) }}", "{% macro m(f) %}{{ f(2) }}{% endmacro %}{% macro g(x) %}{{ x * 2 }}{% endmacro %}{{ m(g) }}", "{% macro m(l) %}{{ l }}{% endmacro %}{{ m(l=[1]) }}{{ l }}",
    "{% filter upper %}abc{{ n }}{% endfilter %}", "{% filter replace('a', 'b') | upper %}aac{% endfilter %}", "{% filter nope %}x{% endfilter %}", "{% filter trim %}{% set q = 1 %} x {% endfilter %}{{ q is defined }}", "{% generation %}x{{ n }}{% endgeneration %}", "{% generation %}{% set q = 1 %}{% endgeneration %}{{ q is defined }}", "{% with %}a{% endwith %}", "{% with a = 1 %}{{ a }}{% endwith %}{{ a }}", "{% with a = 1, b = a %}{{ b }}{% endwith %}", "{% with n = n + 1 %}{{ n }}{% endwith %}{{ n }}",
    "{% do x %}", "{% foo %}", "{% include 'x' %}", "{% import 'x' as y %}", "{% extends 'x' %}", "{{ x | }}", "{{ | upper }}", "{{ n | upper | }}", "{% if false %}{{ n|nope }}{% endif %}ok", "{{ n|nope if false else 'ok' }}", "{{ n|nope }}", "{% for x in [] %}{{ x|nope }}{% endfor %}", "{% if false %}{% for x in [] %}{{ x|nope }}{% endfor %}{% endif %}ok", "{% if n is nope %}x{% endif %}", "{% if false %}{{ n is nope }}{% endif %}ok", "{% macro m() %}{{ n|nope }}{% endmacro %}ok",
    "{{ raise_exception('a' ~ n) }}", "{% if true %}{{ raise_exception(no) }}{% endif %}", "{% set raise_exception = 1 %}{{ raise_exception }}", "{% set range = 5 %}{{ range }}", "{{ messages }}", "{% set s = s ~ '!' %}{{ s }}", "{{ 1 }}{{ '' }}{{ no }}{{ undefinedx }}", "{{ x.y is defined }}", "{{ d.x is defined }}{{ d.x.y is defined }}", "{% set x = namespace(v=[]) %}{% for i in l %}{% set x.v = x.v + [i] %}{% endfor %}{{ x.v }}", "{%for x in l%}{{x}}{%endfor%}", "{%-for x in l-%} {{x}} {%-endfor-%}", "{{l|length}}{{-1}}{{ -1 }}", "{{ 1\n+\n2 }}\n{% set\nx\n=\n1 %}\n{{ x }}",
    "{% set x = 1 %}\n\n{% set y = 2 %}\n{{ x + y }}", "a\n  {%- if true %}\n  b\n  {%- endif %}\nc", "{{ 'a' if n in [7] and s is string else 'b' }}", "{% for m in ms if m.role == 'user' and m.content is defined %}{{ m.n }}{% endfor %}", "{% set ok = ms | selectattr('role', 'equalto', 'tool') | list %}{{ ok | length }}{{ ok[0].n }}", "{% for m in ms %}{{ m.content or 'empty' }}{{ '' if loop.last else '/' }}{% endfor %}", "{% for g in ll %}{% for x in g %}{{ x }}{% endfor %}{{ loop.index }}{% endfor %}", "{% set ns = namespace(found=false) %}{% for x in l if not ns.found %}{{ x }}{% set ns.found = true %}{% endfor %}", "{% set ns = namespace(found=false) %}{% for x in l if not ns.found %}{{ x }}{% set ns.found = loop.length > 0 %}{% endfor %}",
    "{% set a = [1, 2] %}{% set b = a %}{{ a == b }}{{ a is sameas b }}{{ [1, 2] is sameas a }}", "{{ (l | map('string') | list)[0] }}{{ l | map('string') | first }}", "{% set g = l | map('string') %}{{ g | join }}{{ g | join }}", "{% set it = d.items() %}{{ it | length }}{{ it | length }}", "{{ ('a', 'b') | join }}{{ ('a',) }}", "{{ '%s' % [1] }}{{ '%s' % (1,) }}{{ '%s' % {'a': 1} }}", "{{ ({'a': 1} | items | list)[0] }}", "{{ 'x' if undefinedx }}|{{ 'x' if undefinedx is undefined }}", "{{ [1, 2, 3] | select('in', [2, 3]) | list }}", "{{ d == {'C': 2, 'items': 'own', 'a': [1, {'x': none}], 'b': 1} }}",
]

SNIPPETS = ["{{ " + piece + " }}" for piece in expressions()] + STATEMENTS

# What Python can do and the subset refuses: these must be errors, never another output.
OUTSIDE = [
    "{{ 2**63 }}", "{{ 9223372036854775807 + 1 }}", "{{ '%c' % 1 }}", "{{ '\\N{BULLET}' }}",
    "{{ s|attr('upper') }}", "{{ '{:,}'.format(1234) }}", "{{ s|center }}", "{{ s|truncate(3) }}",
    "{{ '{0[a]}'.format(d) }}", "{{ '{:{w}}'.format(1, w=5) }}", "{% for x in l recursive %}{{ x }}{% endfor %}",
    "{% call m() %}{% endcall %}", "{% block b %}x{% endblock %}", "{% print n %}", "{{ s.encode('utf-8') }}",
    "{{ s.zfill(20) }}", "{{ d.fromkeys([1]) }}", "{{ l.sort() }}", "{{ lipsum() }}", "{{ cycler(1) }}", "{{ joiner() }}",
]

# Methods that change what they are called on; the sandbox of transformers forbids them.
MUTABLE_SNIPPETS = [
    "{{ l.append(4) }}{{ l }}", "{% set a = [1] %}{% set b = a %}{% set _ = a.append(2) %}{{ b }}", "{% set _ = d.update({'z': 1}) %}{{ d.z }}", "{% set _ = d.update(z=2) %}{{ d.z }}", "{{ d.pop('b') }}{{ d }}", "{{ d.pop('q', 5) }}", "{{ d.pop('q') }}", "{{ l.pop() }}{{ l }}", "{{ l.pop(0) }}{{ l }}", "{{ [].pop() }}", "{{ l.pop(9) }}", "{{ l.extend([7, 8]) }}{{ l }}", "{{ l.extend(l) }}{{ l }}", "{{ l.insert(1, 'x') }}{{ l }}", "{{ l.insert(-1, 'x') }}{{ l.insert(99, 'y') }}{{ l }}", "{{ d.setdefault('b', 9) }}{{ d.setdefault('q', 9) }}{{ d.q }}", "{% for x in l %}{% if x == 3 %}{% set _ = l.append(9) %}{% endif %}{{ x }}{% endfor %}", "{% set c = d.copy() %}{% set _ = c.pop('b') %}{{ d.b }}{{ c.b is defined }}", "{% set ns = namespace(v=[]) %}{% for m in ms %}{% set _ = ns.v.append(m.n) %}{% endfor %}{{ ns.v }}", "{{ (1, 2).append(3) }}", "{{ 'a'.append('b') }}", "{% set m = {} %}{% for i in range(20) %}{% set _ = m.update({'k' ~ i: i}) %}{% endfor %}{% set _ = m.pop('k3') %}{{ m }}{{ m.k7 }}{{ 'k3' in m }}",
]
