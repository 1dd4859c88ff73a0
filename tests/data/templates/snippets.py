"""Small templates over one context, each a line of Python, grouped by what they show.
The first three blocks are expressions, separated by " ;; "."""

CONTEXT = {
    "s": "Hello World", "u": "héllo wörld ☃ 日本語 ß", "e": "", "sp": " \t padded\u00a0 \n", "ml": "one\ntwo\n\nfour", "csv": "a,b,,c",
    "html": "<a href=\"x\">&'</a>", "q": "it's \"q\" \\ \x07 \u200b é",
    "n": 42, "neg": -7, "f": 3.5, "z": 0, "t": True, "fa": False, "no": None, "big": 9007199254740993,
    "lst": [3, 1, 2], "words": ["apple", "Banana", "cherry", "apple"], "mixed": [1, "a", None, 2.5, True, [1, "x"], {"k": "v"}], "el": [],
    "d": {"b": 1, "a": 2, "C": 3}, "ed": {}, "deep": {"x": {"y": [{"z": "found"}]}}, "tricky": {"items": [1], "keys": "K", "get": "G", "a b": 5},
    "users": [{"name": "Ann", "age": 31, "on": True}, {"name": "bob", "age": 25, "on": False}, {"name": "Cy", "age": 31}],
    "tree": [{"v": 1, "kids": [{"v": 2, "kids": [{"v": 3, "kids": []}]}, {"v": 4, "kids": []}]}],
}

EXPRESSIONS = """
1 ;; 1.0 ;; 1e3 ;; 1_000 ;; 0x1f ;; 0b101 ;; 0o17 ;; 1.5e-7 ;; 1e16 ;; 123456789012345678.0 ;; 0.1 ;; 1e22 ;; 1.0e-5 ;; 0.0001 ;; -0.0 ;; 2.5e300
7 + 2 ;; 7 - 2 ;; 7 * 2 ;; 7 / 2 ;; 7 // 2 ;; 7 % 2 ;; 7 ** 2 ;; 2 ** -1 ;; 2 ** 0.5 ;; 4 / 2 ;; -7 // 2 ;; -7 % 3 ;; 7 % -3 ;; 7.5 // 2 ;; -7.5 // 2 ;; -7.5 % 2 ;; 7.5 % -2 ;; 5 // 0.3
2 ** 3 ** 2 ;; -2 ** 2 ;; (1 + 2) * 3 ;; 1 + 2 * 3 ;; 10 - 2 - 3 ;; -n ;; +n ;; - -n ;; -f ;; not t ;; not e ;; not not s ;; true + true ;; t * 3 ;; 1.5 + t ;; 0.1 + 0.2 ;; 1 / 3 ;; 2 / 3 ;; 100 * 1.1
1 == 1.0 ;; 1 == t ;; '1' == 1 ;; none == false ;; none == none ;; [1, 2] == [1, 2] ;; (1, 2) == [1, 2] ;; {'a': 1} == {'a': 1.0} ;; missing == missing ;; missing == none ;; s != e
1 < 2 ;; 1 < 2 < 3 ;; 1 < 3 < 2 ;; 3 > 2 >= 2 ;; 'a' < 'b' ;; 'Z' < 'a' ;; [1, 2] < [1, 3] ;; [1] < [1, 0] ;; 1 <= 1.0 ;; 2 >= 3 ;; big == 9007199254740992.0 ;; big > 9007199254740992.0
1 < 'a' ;; none < 1 ;; [1] < 'a' ;; {} < {} ;; missing < 1 ;; 1 < missing
'a' in 'abc' ;; 'x' not in 'abc' ;; '' in s ;; 1 in lst ;; 9 not in lst ;; 'a' in d ;; 'z' in d ;; 1 in d ;; none in mixed ;; 1.0 in lst ;; missing in lst ;; 1 in missing ;; 'a' in missing
1 in 'abc' ;; 1 in 5 ;; [1] in d
s and n ;; e and n ;; e or 'dflt' ;; n or e ;; no or e or 0 ;; t and fa ;; missing or 'x' ;; missing and 1
'yes' if t else 'no' ;; 'yes' if e else 'no' ;; 'only' if fa ;; 'a' if fa else 'b' if fa else 'c' ;; ('only' if fa) is defined
'a' ~ 1 ~ none ~ t ~ 1.0 ~ [1] ~ missing ;; 'a' + 'b' ;; 'ab' * 3 ;; 3 * 'ab' ;; 'ab' * -1 ;; [1] * 3 ;; [1] + [2] ;; (1,) + (2,) ;; (1, 2) * 2
'a' + 1 ;; 1 + 'a' ;; [1] + (2,) ;; none + 1 ;; 'a' - 'b' ;; 'a' * 'b' ;; missing + 1 ;; 1 + missing ;; missing * 2 ;; -missing ;; -s ;; 1 / 0 ;; 1 // 0 ;; 1 % 0 ;; 1.0 / 0 ;; 0 ** -1
none ;; true ;; false ;; True ;; False ;; None ;; s ;; n ;; f ;; lst ;; d ;; mixed ;; ed ;; el ;; () ;; (1,) ;; (1, 2) ;; [[]] ;; {'a': none} ;; q ;; [q] ;; [html, u] ;; ['\\n\\t\\\\'] ;; ["it's"] ;; ['say "x"'] ;; [1.0, 1e100, true]
{1: 'a', 1.5: 'b', none: 'c', true: 'd'} ;; {'a': 1, 'a': 2} ;; {(1, 2): 'x'}[(1, 2)] ;; {1: 'x'}[true] ;; {[1]: 2}
'\\x41\\u00e9\\U0001F600\\101\\q\\'' ;; "a" 'b' "c" ;; 'a\\nb'
s[0] ;; s[-1] ;; s[99] ;; u[1] ;; u[-1] ;; lst[0] ;; lst[-1] ;; lst[9] ;; lst['x'] ;; lst.0 ;; d['a'] ;; d.a ;; d['zz'] ;; d.zz ;; d[1] ;; deep.x.y[0].z ;; deep['x']['y'].0['z'] ;; deep.q ;; tricky.items() ;; tricky['items'] ;; tricky.keys() ;; tricky['keys'] ;; tricky.get('a b') ;; tricky['get'] ;; tricky['a b']
deep.q.r ;; missing.x ;; missing['x'] ;; missing() ;; none.x ;; n.x ;; none['x'] ;; s.nothing ;; n[0] ;; n() ;; s() ;; d()
s[1:3] ;; s[:3] ;; s[3:] ;; s[:] ;; s[::-1] ;; s[::2] ;; s[-3:] ;; s[:-3] ;; s[5:2] ;; s[10:1:-2] ;; s[-100:100] ;; u[::-1] ;; u[1:4] ;; lst[1:] ;; lst[::-1] ;; lst[:-1] ;; (1, 2, 3)[1:] ;; mixed[1:6:2] ;; el[1:]
s[::0] ;; n[1:] ;; missing[1:] ;; s['a':]
s.upper() ;; s.lower() ;; s.title() ;; s.capitalize() ;; s.swapcase() ;; u.upper() ;; u.title() ;; u.capitalize() ;; "they're bill's".title() ;; 'x_y-z 1a'.title()
sp.strip() ;; sp.lstrip() ;; sp.rstrip() ;; 'xxaxx'.strip('x') ;; 'xyaxy'.lstrip('yx') ;; 'aé☃'.rstrip('☃é') ;; '  a '.strip(none) ;; ''.strip() ;; '\\u2003a\\u3000'.strip()
s.split() ;; s.split('o') ;; s.split('o', 1) ;; s.split(maxsplit=1) ;; '  a  b '.split() ;; '  a  b  c '.split(none, 1) ;; csv.split(',') ;; csv.rsplit(',', 1) ;; csv.split(',', 0) ;; 'a  b c'.rsplit(none, 1) ;; ''.split() ;; ''.split(',') ;; 'abc'.split('') ;; u.split(' ')
ml.splitlines() ;; ml.splitlines(true) ;; 'a\\r\\nb\\rc'.splitlines() ;; ''.splitlines() ;; '\\n'.splitlines()
s.startswith('He') ;; s.startswith('x') ;; s.startswith(('x', 'H')) ;; s.endswith('ld') ;; s.endswith(('a', 'd')) ;; s.startswith('llo', 2) ;; s.endswith('lo', 0, 5) ;; s.startswith('') ;; s.startswith(1) ;; s.startswith(['H'])
s.replace('o', '0') ;; s.replace('o', '0', 1) ;; s.replace('', '-') ;; 'aaa'.replace('a', 'b', 2) ;; s.replace('zz', 'y') ;; u.replace('ö', 'oe') ;; s.replace('o')
s.find('o') ;; s.find('o', 5) ;; s.find('zz') ;; s.rfind('o') ;; s.index('W') ;; s.rindex('o') ;; u.find('☃') ;; s.count('l') ;; 'aaaa'.count('aa') ;; s.count('') ;; s.find('o', -5, -1) ;; s.index('zz')
','.join(words) ;; ''.join(['a', 'b']) ;; ', '.join(d) ;; '-'.join('abc') ;; ','.join(lst) ;; ','.join(missing)
'12'.isdigit() ;; '1a'.isdigit() ;; ''.isdigit() ;; 'abc'.isalpha() ;; '日本'.isalpha() ;; 'a1'.isalnum() ;; ' \\t'.isspace() ;; 'ab'.islower() ;; 'AB'.isupper() ;; 'Ab'.islower() ;; '1'.islower() ;; '²'.isdigit() ;; '½'.isnumeric() ;; '5'.isdecimal() ;; 'é'.isascii()
'a-b-c'.partition('-') ;; 'a-b-c'.rpartition('-') ;; 'abc'.partition('x') ;; 'abc'.rpartition('x') ;; 'abc'.removeprefix('a') ;; 'abc'.removesuffix('c') ;; 'a'.center(4) ;; 'ab'.center(5, '*') ;; 'a'.ljust(3) ~ '|' ;; 'a'.rjust(3) ;; '-5'.zfill(4) ;; '5'.zfill(3)
'{} {}'.format(1, 'a') ;; '{1}{0}'.format('a', 'b') ;; '{x}'.format(x=3) ;; '{:>5}|{:<5}|{:^5}'.format('a', 'b', 'c') ;; '{:05d}'.format(42) ;; '{:.2f}'.format(3.14159) ;; '{:,}'.format(1234567) ;; '{:x} {:X} {:#x} {:b} {:o}'.format(255, 255, 255, 5, 8) ;; '{{}}'.format() ;; '{:+d}'.format(5) ;; '{:e}'.format(12345.678) ;; '{:.1%}'.format(0.256) ;; '{!r}'.format('a') ;; '{0[a]} {0[b]}'.format(d) ;; '{u[0]}'.format(u=words) ;; '{:*^9}'.format('mid') ;; '{:6.2f}|'.format(-1.5) ;; '{:g} {:g}'.format(0.0001, 1e10)
'{}'.format() ;; '{'.format() ;; '{x}'.format(1) ;; '{:d}'.format('a') ;; '{:d}'.format(1.5)
'%s and %s' % ('a', 1) ;; '%d' % 3.7 ;; '%05.1f' % 3.14159 ;; '%x' % 255 ;; '%5s|%-5s|' % ('a', 'b') ;; '%%' % () ;; '%s' % 'x' ;; '%r' % 'x' ;; '%(a)s-%(b)d' % d ;; '%+d' % 5 ;; '%s' % [1] ;; '%03d' % 7 ;; '%s' % none ;; '%.2s' % 'abc' ;; '%e' % 1234.5 ;; '%g' % 0.5
'%d' % 'x' ;; '%s %s' % 'a' ;; '%s' % (1, 2) ;; '%q' % 1
d.items() ;; d.keys() ;; d.values() ;; d.get('a') ;; d.get('zz') ;; d.get('zz', 'dflt') ;; d.get('a', 1) ;; d.items()|list ;; d.keys()|list ;; d.values()|list ;; d.copy() ;; d.get([1]) ;; ed.items() ;; d.items() is sequence ;; d.items()|length
lst.index(1) ;; lst.count(1) ;; lst.index(99) ;; (1, 2, 1).count(1) ;; words.count('apple') ;; lst.copy()
range(3) ;; range(1, 4) ;; range(5, 0, -2) ;; range(0)|list(1)
range(3)|list ;; range(1, 4)|list ;; range(5, 0, -2)|list ;; range(0)|list ;; range(3)|length ;; range(10)[3] ;; range(5)|last ;; 2 in range(3)
range(0, 10, 0) ;; range('a') ;; range(1.5) ;; range(200000) ;; range()
dict(a=1, b=2) ;; dict([('a', 1), ('b', 2)]) ;; dict(d, z=9) ;; dict() ;; dict({'q': 1})
"""

FILTERS = """
s|upper ;; s|lower ;; u|title ;; 'foo-bar (baz) it\\'s [x]'|title ;; 'HELLO wORLD'|capitalize ;; n|upper ;; none|lower ;; missing|upper
sp|trim ;; 'xxaxx'|trim('x') ;; n|trim ;; missing|trim
s|length ;; u|length ;; lst|length ;; d|length ;; d|count ;; missing|length ;; el|length ;; '日本'|length
words|join ;; words|join(', ') ;; lst|join('-') ;; users|join(', ', attribute='name') ;; mixed|join(';') ;; missing|join ;; d|join(',') ;; 'abc'|join('.') ;; el|join(',') ;; lst|join(1)
missing|default('x') ;; missing|default ;; e|default('x') ;; e|default('x', true) ;; no|default('x') ;; no|d('x', boolean=true) ;; 0|default(5, true) ;; missing.x|default('y') ;; d.zz|default('z')
lst|first ;; lst|last ;; el|first ;; el|last ;; s|first ;; u|last ;; d|first ;; missing|first ;; (el|first) is defined ;; d.items()|first
lst|list ;; s|list ;; d|list ;; missing|list ;; (1, 2)|list
n|string ;; none|string ;; missing|string ;; f|string ;; lst|string
'42'|int ;; '42.7'|int ;; 'abc'|int ;; 'abc'|int(7) ;; '0x1f'|int(0, 16) ;; '1f'|int(base=16) ;; f|int ;; -3.7|int ;; none|int ;; t|int ;; ' 12 '|int ;; '1_000'|int ;; '1e3'|int ;; lst|int(5) ;; 'inf'|int ;; ''|int ;; '-5'|int
'3.5'|float ;; 'abc'|float ;; 'abc'|float(1.5) ;; n|float ;; none|float ;; '1e3'|float ;; 'nan'|float ;; '-inf'|float ;; ' 2 '|float ;; t|float ;; '1_0.5'|float
neg|abs ;; f|abs ;; -2.5|abs ;; t|abs
42.55|round ;; 42.55|round(1) ;; 42.55|round(1, 'floor') ;; 42.55|round(1, 'ceil') ;; 2.5|round ;; 3.5|round ;; -2.5|round ;; 2.675|round(2) ;; n|round ;; 1234.5|round(-2) ;; 1250|round(-2) ;; 0.5|round ;; 1e20|round ;; 42.1|round(0, 'ceil') ;; n|round(1, 'floor') ;; 2.4|round|int
s|replace('o', '0') ;; s|replace('o', '0', 1) ;; n|replace(4, 'x') ;; missing|replace('a', 'b') ;; 'aaa'|replace('a', 'b', count=2)
lst|reverse|list ;; s|reverse ;; d|reverse|list ;; (1, 2)|reverse|list
lst|sort ;; lst|sort(reverse=true) ;; words|sort ;; words|sort(case_sensitive=true) ;; users|sort(attribute='age')|map(attribute='name')|list ;; users|sort(attribute='age,name')|map(attribute='name')|list ;; d|sort ;; ['b', 'A', 'a', 'B']|sort ;; el|sort ;; mixed|sort ;; users|sort(reverse=true, attribute='age')|map(attribute='name')|list
words|unique|list ;; ['a', 'A', 'b']|unique|list ;; ['a', 'A']|unique(true)|list ;; users|unique(attribute='age')|map(attribute='name')|list ;; [1, 1.0, true, 2]|unique|list
users|map(attribute='name')|list ;; words|map('upper')|list ;; users|map(attribute='on', default='?')|list ;; lst|map('string')|map('length')|list ;; words|map('replace', 'a', 'b')|list ;; users|map(attribute='zz')|map('default', '-')|list ;; missing|map('upper')|list ;; deep.x.y|map(attribute='z')|list ;; [deep]|map(attribute='x.y.0.z')|list ;; lst|map('nope')|list ;; lst|map|list
lst|select('odd')|list ;; lst|reject('odd')|list ;; lst|select('gt', 1)|list ;; mixed|select|list ;; mixed|reject|list ;; mixed|select('string')|list ;; lst|select('in', [1, 2])|list ;; lst|select('>=', 2)|list
users|selectattr('on')|map(attribute='name')|list ;; no|selectattr('on')|list ;; no|map('upper')|list ;; no|select|list ;; 5|select|list ;; users|rejectattr('on')|map(attribute='name')|list ;; users|selectattr('age', 'equalto', 31)|map(attribute='name')|list ;; users|selectattr('on', 'defined')|map(attribute='name')|list ;; users|rejectattr('name', 'in', ['Ann'])|map(attribute='name')|list ;; users|selectattr('age', 'gt', 30)|list|length ;; users|selectattr('name', '==', 'bob')|first
d|items|list ;; ed|items|list ;; missing|items|list ;; s|items|list
d|dictsort ;; d|dictsort(true) ;; d|dictsort(false, 'value') ;; d|dictsort(reverse=true) ;; d|dictsort(by='value', reverse=true) ;; missing|dictsort
ml|indent ;; ml|indent(2) ;; ml|indent(2, true) ;; ml|indent(2, blank=true) ;; ml|indent('> ') ;; ml|indent(width=2, first=true) ;; ''|indent(2, true) ;; 'a\\n'|indent(2) ;; missing|indent
html|escape ;; html|e ;; html|safe ;; (html|safe) + '<b>' ;; '<b>' + (html|safe) ;; html ;; e|e ;; html|forceescape ;; n ;; e ;; (html|safe) ~ '<b>' ;; html|safe|length ;; (html|e) is escaped
lst|min ;; lst|max ;; words|max ;; words|min ;; el|min ;; users|max(attribute='age') ;; lst|sum ;; users|sum(attribute='age') ;; el|sum ;; lst|sum(start=10) ;; [0.1, 0.2]|sum ;; words|sum ;; ['b', 'A']|min ;; ['b', 'A']|min(true) ;; users|min(attribute='name')
range(7)|batch(3)|list ;; range(7)|batch(3, 'x')|list ;; range(7)|slice(3)|list ;; range(7)|slice(3, 'x')|list ;; el|batch(2)|list
users|groupby('age')|map('first')|list ;; users|groupby('age')|map('last')|map('map', attribute='name')|map('list')|list ;; users|groupby('on', default=false)|map('first')|list
s|wordcount ;; 'a b  c-d'|wordcount ;; 'ab'|center(6) ~ '|' ;; 'foo bar baz qux'|truncate(9) ;; 'foo bar baz qux'|truncate(9, true) ;; 'foo bar baz qux'|truncate(11) ;; 'foo bar baz qux'|truncate(11, false, '..', 0)
'%s, %s!'|format('Hi', 'you') ;; '%(x)s'|format(x=1) ;; '%.3f'|format(3.14159)
d|attr('items') is defined ;; d|attr('a') is defined ;; s|attr('upper') is defined
d|tojson ;; lst|tojson ;; s|tojson ;; u|tojson ;; q|tojson ;; none|tojson ;; t|tojson ;; f|tojson ;; n|tojson ;; mixed|tojson ;; ed|tojson ;; el|tojson ;; [[], {}]|tojson ;; 1e16|tojson ;; 1.0|tojson ;; (1, 2)|tojson ;; {1: 2, none: 3, true: 4, 1.5: 5}|tojson
d|tojson(indent=2) ;; mixed|tojson(indent=4) ;; [[], {}]|tojson(indent=1) ;; u|tojson(ensure_ascii=true) ;; '😀\\x7f'|tojson(ensure_ascii=true) ;; d|tojson(separators=(',', ':')) ;; d|tojson(sort_keys=true) ;; d|tojson(indent=0) ;; mixed|tojson(separators=(',', ': '), indent=2) ;; d|tojson(indent='--') ;; html|tojson ;; '\\x08\\x0c\\x1f\\u2028'|tojson
missing|tojson ;; d.items()|tojson ;; range(2)|tojson ;; {(1, 2): 3}|tojson
s|upper|lower|title ;; -1|abs ;; (-1)|abs ;; 1 + 2|abs ;; 'a' ~ 'b'|upper ;; -n|string ;; n|string|length + 1
s|nofilter ;; s|upper(1) ;; lst|join(1, 2, 3) ;; s|trim(1) ;; lst|abs ;; s|round ;; missing|int ;; missing|abs ;; s|tojson(nope=1)
"""

TESTS = """
missing is defined ;; s is defined ;; missing is undefined ;; d.zz is defined ;; deep.x.y is defined ;; no is defined ;; missing is not defined ;; not missing is defined
no is none ;; s is none ;; missing is none ;; no is not none ;; t is boolean ;; 1 is boolean ;; t is true ;; 1 is true ;; fa is false ;; 0 is false ;; no is false
n is number ;; f is number ;; t is number ;; s is number ;; n is integer ;; t is integer ;; f is integer ;; f is float ;; n is float ;; s is string ;; n is string ;; no is string ;; (s|safe) is string
d is mapping ;; lst is mapping ;; missing is mapping ;; lst is iterable ;; s is iterable ;; d is iterable ;; n is iterable ;; missing is iterable ;; no is iterable ;; lst is sequence ;; s is sequence ;; d is sequence ;; n is sequence ;; (1,) is sequence ;; range(3) is sequence ;; missing is sequence
3 is odd ;; 3 is even ;; n is divisibleby 7 ;; n is divisibleby(5) ;; 1 is eq 1 ;; 1 is equalto 2 ;; 1 is ne 2 ;; 1 is lt 2 ;; 2 is gt 1 ;; 2 is ge 2 ;; 2 is le 1 ;; 2 is greaterthan 1 ;; 1 is lessthan 2 ;; 1 is in [1, 2] ;; 3 is in lst ;; 'a' is in 'abc' ;; 1 is not in [2]
s is callable ;; range is callable ;; s.upper is callable ;; 'ABC' is upper ;; 'abc' is lower ;; 'Abc' is upper ;; 1 is sameas 1 ;; none is sameas none ;; true is sameas true ;; 1 is sameas true ;; 'upper' is filter ;; 'nope' is filter ;; 'odd' is test
n is odd and t ;; n is even or fa ;; not n is odd ;; n is even == true ;; 'a' if n is defined else 'b' ;; n is string or n is number ;; s is string and s|length > 3 ;; 1 if d is mapping and 'a' in d
s is nope ;; s is odd ;; s is defined is string ;; n is divisibleby ;; n is divisibleby 0
"""

TEMPLATES = [
    # whitespace control
    "{% if t %}\nyes\n{% endif %}\nend\n", "  {% if t %}\n  yes\n  {% endif %}\nend", "a  {%- if t -%}  b  {%- endif -%}  c", "x\n  {%+ if t %}\ny{% endif %}",
    "x {{ n }}\ny", "  {{ n }}\n  {{- n -}}  \n z", "{% if t +%}\nkept{% endif %}", "a\n\n{%- if t %}\n\nb\n{%- endif %}\nc", "a{# c #}b", "a\n  {# c #}\nb",
    "a\n  {#- c -#}  \nb", "{# a\nb #}\nx", "a {#+ c +#}\n b", "\n\nx\n\n", "x\n", "x\n\n", "\n", "", "a\r\nb\rc\n", "  {% set a = 1 %}  \n{{ a }}", "\t{% set a = 1 %}\n{{ a }}",
    "x{% set a = 1 %}\n{{ a }}", "{{ n }}  {% set a = 1 %}\nb", "{% set a = 1 %}  {% set b = 2 %}\nx", "{% for x in lst %}\n  {{ x }}\n{% endfor %}\n", "{% for x in lst %}{{ x }}{% endfor %}",
    "{% raw %}{{ x }} {% if %}{% endraw %}", "a {% raw -%}  b  {%- endraw %} c", "  {% raw %}\n  {{ a }}\n  {% endraw %}\nz", "{%raw%}{#{%endraw%}", "{{ '{{' }}{{ '%}' }}", "{{- n -}} x", "x {{- n }}", "{{ {'a': {'b': 1}}.a.b }}",
    "{{ {'a': 1} }}", "{{ '}}' }}", "a { b } {c} % }} %}", "{ {", "{", "{%- set x = 1 -%}\n\n  {{ x }}", "a\n{%- for x in [1,2] -%}\n {{ x }} \n{%- endfor -%}\nb", "é {%- if t %} é{% endif %}\u00a0{%- if t %}x{% endif %}",
    "a\n    {% if t %}b{% endif %}\n    {% if t %}\n    c\n    {% endif %}", "{% if t %}\r\nx{% endif %}", "{{ 'a\nb' }}", "{{ 'a\r\nb' }}", "{%if t%}x{%endif%}", "{%\nif\nt\n%}x{% endif\n%}",
    # if
    "{% if fa %}a{% elif z %}b{% elif t %}c{% else %}d{% endif %}", "{% if fa %}a{% elif z %}b{% else %}d{% endif %}", "{% if missing %}a{% endif %}|", "{% if el %}a{% else %}b{% endif %}", "{% if lst and d %}a{% endif %}", "{% if t: %}a{% endif %}",
    "{% if 1, 2 %}a{% endif %}", "{% if 0.0 %}a{% else %}b{% endif %}", "{% if '0' %}a{% endif %}", "{% if t %}{% if fa %}x{% else %}y{% endif %}{% endif %}", "{% if t %}{% set v = 5 %}{% endif %}{{ v }}", "{% if fa %}{% set s = 5 %}{% endif %}{{ s }}",
    # for
    "{% for x in lst %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ x }};{% endfor %}",
    "{% for x in lst %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }};{% endfor %}", "{% for x in lst %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }};{% endfor %}", "{% for x in lst %}{{ loop.cycle('a', 'b') }}{% endfor %}", "{% for x in [1,1,2] %}{{ loop.changed(x) }}{% endfor %}",
    "{% for x in lst if x > 1 %}{{ loop.index }}/{{ loop.length }}:{{ x }} {% endfor %}", "{% for x in el %}a{% else %}empty{% endfor %}", "{% for x in lst if x > 9 %}a{% else %}none{% endfor %}", "{% for k, v in d.items() %}{{ k }}={{ v }},{% endfor %}",
    "{% for k in d %}{{ k }}{% endfor %}", "{% for c in u %}{{ c }}.{% endfor %}", "{% for x in missing %}a{% else %}b{% endfor %}", "{% for a, b in [(1, 2), [3, 4], 'xy'] %}{{ a }}{{ b }};{% endfor %}", "{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for x in 1, 2 %}{{ x }}{% endfor %}", "{% for x, in [[1], [2]] %}{{ x }}{% endfor %}", "{% for x in n %}a{% endfor %}", "{% for x in no %}a{% endfor %}", "{% for a, b in [1] %}a{% endfor %}", "{% for a, b in [[1, 2, 3]] %}a{% endfor %}",
    "{% for x in lst %}{% for y in lst %}{{ loop.index }}{{ x }}{{ y }} {% endfor %}{{ loop.index }};{% endfor %}", "{% for x in lst %}{% set v = x %}{% endfor %}{{ v }}", "{% set v = 0 %}{% for x in lst %}{% set v = v + x %}{{ v }},{% endfor %}{{ v }}",
    "{% for x in lst %}{{ x }}{% endfor %}{{ x }}", "{% set x = 9 %}{% for x in lst %}{{ x }}{% endfor %}{{ x }}", "{% for x in range(5) %}{% if x == 1 %}{% continue %}{% endif %}{% if x == 3 %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in lst %}{% for y in lst %}{% break %}{% endfor %}{{ x }}{% endfor %}", "{% for x in lst %}{% break %}{% else %}e{% endfor %}|", "{% for x in lst %}{% continue %}{% else %}e{% endfor %}|", "{% for x in lst %}{% if x == 1 %}{% break %}{% endif %}{% else %}e{% endfor %}|", "{% for item in tree recursive %}{{ loop.depth }}{{ loop.depth0 }}:{{ item.v }}[{{ loop(item.kids) }}]{% endfor %}",
    "{% for x in lst %}{{ loop(x) }}{% endfor %}", "{% for x in lst|sort|reverse %}{{ x }}{% endfor %}", "{% for x in 'a' if t else 'b' %}{{ x }}{% endfor %}", "{% for x in lst[::-1] %}{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}", "{% for x in lst %}{{ loop }}{% endfor %}",
    "{% for i in range(3) %}{{ 'x' * i }};{% endfor %}", "{% for m in users %}{{ m.name }}{{ m.on }}{% endfor %}", "{% for k, v in d|dictsort %}{{ k }}{% endfor %}", "{% for k, v in d|items %}{{ k }}{% endfor %}", "{% for x in lst %}{{ loop.nope }}{% endfor %}", "{% for x in lst %}{{ loop.nope.x }}{% endfor %}",
    "{% set loop = 5 %}{% for x in [1] %}{{ loop.index }}{% endfor %}{{ loop }}",
    # set, namespace
    "{% set a = 1 %}{{ a }}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a = 1, 2 %}{{ a }}", "{% set (a, b) = [1, 2] %}{{ b }}{{ a }}", "{% set a %}x{{ n }}y{% endset %}{{ a }}", "{% set a | upper %}abc{% endset %}{{ a }}", "{% set a | replace('b', 'x') | upper %}abc{% endset %}{{ a }}",
    "{% set a %}{% set b = 1 %}{% endset %}{{ b }}|", "{% set ns = namespace(x=1) %}{% for i in lst %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}", "{% set ns = namespace() %}{% set ns.a = 5 %}{{ ns.a }}{{ ns.b }}", "{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns.b }}{{ ns['a'] }}",
    "{% set d.x = 1 %}", "{% set nope.x = 1 %}", "{% set ns = namespace() %}{% set ns.x %}body{% endset %}{{ ns.x }}", "{% set ns = namespace(a=1) %}{% set ns.a, b = 3, 4 %}{{ ns.a }}{{ b }}", "{% set a, b = [1] %}", "{% set a, b = 5 %}", "{% set n = n + 1 %}{{ n }}", "{% set range = 5 %}{{ range }}",
    "{% set true = 1 %}", "{% set 1 = 1 %}", "{% set a[0] = 1 %}", "{% set a + b = 1 %}", "{% set ns = namespace(f=1) %}{% macro m() %}{% set ns.f = 2 %}{% endmacro %}{{ m() }}{{ ns.f }}", "{% set ns=namespace(l=[]) %}{% for x in lst %}{% set ns.l = ns.l + [x * 2] %}{% endfor %}{{ ns.l }}",
    # macros
    "{% macro f(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ f(1) }} {{ f(1, 3) }} {{ f(b=5, a=4) }}", "{% macro f(a) %}[{{ a }}]{% endmacro %}{{ f() }}", "{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, x=3) }}", "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}", "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(x=2) }}",
    "{% macro f(a, b=a) %}{{ b }}{% endmacro %}{{ f(7) }}", "{% macro f() %}{{ n }}{{ v }}{% endmacro %}{% set v = 1 %}{{ f() }}{% set v = 2 %}{{ f() }}", "{% macro fact(k) %}{% if k <= 1 %}1{% else %}{{ k * fact(k - 1)|int }}{% endif %}{% endmacro %}{{ fact(5) }}", "{{ f() }}{% macro f() %}{% endmacro %}",
    "{% macro f(x) %}  {{ x }}  {% endmacro %}{{ f(1)|trim }}{{ f(1)|length }}", "{% macro f() %}{% set w = 3 %}{{ w }}{% endmacro %}{{ f() }}{{ w }}", "{% for i in lst %}{% macro f() %}{{ i }}{% endmacro %}{{ f() }}{% endfor %}", "{% macro f(a, b=1, c) %}{% endmacro %}", "{% macro f(x) -%}\n {{ x }}\n{%- endmacro %}{{ f(1) }}|{{ f.name }}",
    "{% macro f(a,b) %}{{ a }}{{ b }}{% endmacro %}{{ f(*[1, 2]) }}{{ f(**{'a': 3, 'b': 4}) }}{{ f(1, **{'b': 5}) }}", "{% macro f(a, b) %}{{ a is defined }}{{ b is defined }}{% endmacro %}{{ f(1) }}", "{% macro f(a=none) %}{{ a }}{% endmacro %}{{ f(none) }}{{ f() }}", "{% macro f() %}{% for x in lst %}{{ x }}{% endfor %}{% endmacro %}{{ f() ~ f() }}", "{% if fa %}{% macro f() %}{% endmacro %}{% endif %}{{ f() }}", "{% if f is defined %}a{% endif %}{% macro f() %}{% endmacro %}{% if f is defined %}b{% endif %}",
    # other blocks
    "{% filter upper %}abc{{ s }}{% endfilter %}", "{% filter trim|upper %}  abc {% endfilter %}", "{% filter replace('a', 'b') %}aaa{% endfilter %}", "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}", "{% with %}{% set a = 1 %}{{ a }}{% endwith %}{{ a }}", "{% with n = 5 %}{{ n }}{% endwith %}{{ n }}", "{% with n = 5, m = n %}{{ m }}{% endwith %}",
    "{% generation %}x{{ n }}{% endgeneration %}y", "{% generation %}{% set a = 1 %}{% endgeneration %}{{ a }}|", "{% for x in lst %}{% generation %}{{ x }}{{ loop.index }}{% endgeneration %}{% endfor %}", "  {% generation %}\nx\n  {% endgeneration %}\ny", "{% print n, s %}",
    "{{ raise_exception('bad thing') }}", "{% if fa %}{{ raise_exception('x') }}{% endif %}ok", "{{ strftime_now('%Y-%m-%d %H:%M|%d %b %Y|%j|%%') }}", "{{ strftime_now('%a %A %b %B %-d %e %I %p %y %U %W %u %w %V %G %D %F %T %R %S %f %Z%z') }}", "{{ strftime_now is defined }}",
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.next() }}", "{% set j = joiner(', ') %}{{ j() }}a{{ j() }}b",
    "{{ lst.append(4) }}{{ lst }}", "{% set l = [] %}{% for x in lst %}{% set _ = l.append(x) %}{% endfor %}{{ l }}", "{{ lst.pop() }}{{ lst }}", "{{ d.update({'q': 1}) }}{{ d }}", "{{ d.pop('a') }}{{ d }}", "{{ lst.insert(0, 9) }}{{ lst.extend([7]) }}{{ lst.remove(1) }}{{ lst.reverse() }}{{ lst }}", "{{ d.setdefault('n', 5) }}{{ d.setdefault('a', 9) }}{{ d.pop('zz', 'q') }}", "{{ d.pop('zz') }}",
    "{{ s.__class__ }}", "{{ s.__class__.__name__ }}", "{{ d._x }}|", "{{ (s).upper() }}", "{{ s | upper is string }}", "{{ n if n }}", "{{ [1, 2,] }}{{ {'a': 1,} }}{{ (1, 2,) }}", "{{ [ ] }}", "{{ lst | map('string') | join('|') }}", "{{ (1, 2), 3 }}", "{{ 1, }}", "{{ users[0]['name'][0] }}", "{{ users | length > 2 }}", "{{ 'x' if users | length > 2 else 'y' }}",
    "{{ namespace(a=1).a }}", "{{ d.items() | list | length }}", "{{ (d.items() | list)[0][1] }}", "{{ 'a' 'b' }}", "{{ s.upper().lower().title() }}", "{{ ' '.join(words).split()[0] }}", "{{ s is not none and s | length }}", "{{ not s == 'x' }}", "{{ 1 if t else 2 + 3 }}", "{{ lst[n] is defined }}", "{{ lst[1 + 1] }}", "{{ lst[-1:][0] }}",
    "{{ 5 is in lst or 3 is in lst }}", "{{ 'a' in d and d['a'] == 2 }}", "{{ (lst | length) - 1 }}", "{{ lst|length - 1 }}", "{{ loop is defined }}", "{{ x.y.z if x is defined else 'none' }}", "{{ -1 ** 2 }}{{ 2 * -1 }}{{ 1 - -1 }}", "{{ n.__add__ is defined }}",
    # what filters give is used up by the first that asks
    "{% set g = lst|select('odd') %}{% for x in g %}{{ x }}{% endfor %}|{% for x in g %}{{ x }}{% endfor %}|{% if g %}t{% endif %}", "{% set g = words|map('upper') %}{{ g|first }}{{ g|list }}{{ g|list }}", "{{ lst|map('string')|length }}", "{{ lst|map('string')|last }}", "{{ lst|map('string')|reverse }}", "{{ lst|reverse|last }}",
    "{% set g = lst|reverse %}{{ 1 in g }}{{ g|list }}", "{% set a, b, c = lst|map('string') %}{{ a }}{{ b }}{{ c }}", "{{ (lst|map('string'))[0] }}|", "{% set g = d|items %}{{ g|list }}{{ g|list }}", "{% for x in lst|map('string') %}{{ loop.length }}{{ loop.last }}{% endfor %}", "{{ d.items()|first }}{{ d.items()|last }}",
    # a filter or test that does not exist matters where it is reached, if a condition decides that
    "{% if fa %}{{ s|nofilter }}{% else %}b{% endif %}", "{% if t %}{{ s|nofilter }}{% endif %}", "{% if t %}a{% elif s is notest %}b{% endif %}", "{{ s|nofilter if fa else 'b' }}", "{{ 'a' if t else s|nofilter }}", "{{ s|nofilter if t else 'b' }}", "{% for x in el %}{{ x|nofilter }}{% endfor %}",
    "{% if fa %}{% for x in el %}{{ x|nofilter }}{% endfor %}{% endif %}", "{% macro f() %}{{ s|nofilter }}{% endmacro %}", "{% if fa %}{% set a %}{{ s|nofilter }}{% endset %}{% endif %}", "{% if fa %}{% set a | nofilter %}{% endset %}{% endif %}a", "{{ s|nofilter|upper if s is notest and fa else 1 }}", "{{ fa and s|nofilter }}",
    # call blocks
    "{% macro f(a) %}[{{ a }}:{{ caller() }}]{% endmacro %}{% call f(1) %}x{{ n }}{% endcall %}", "{% macro f() %}{{ caller(1, b=2) }}{{ caller(3) }}{% endmacro %}{% call(a, b=9) f() %}{{ a }}{{ b }};{% endcall %}", "{% macro f() %}{{ caller is defined }}{% endmacro %}{{ f() }}{% call f() %}{% endcall %}", "{% macro f() %}a{% endmacro %}{% call f() %}x{% endcall %}",
    "{% macro f() %}{{ caller() }}{% endmacro %}{{ f() }}", "{% macro f() %}{{ kwargs|list }}{% endmacro %}{% call f(x=1) %}{% endcall %}", "{% macro f() %}{{ caller() }}{% endmacro %}{% macro g() %}<{{ caller() }}>{% endmacro %}{% call f() %}{% call g() %}x{% endcall %}{% endcall %}", "{% for x in lst %}{% macro f() %}{{ caller() }}{% endmacro %}{% call f() %}\n{{ x }}{% endcall %}{% endfor %}",
    "{% call s %}{% endcall %}", "{% call nope() %}{% endcall %}", "{% call s.upper() %}{% endcall %}", "{% macro f() %}{% endmacro %}{% call f() %}",
    "{{ 'a' % lst }}{{ 'b' % d }}{{ 'c' % missing }}", "{{ 'a' % 1 }}", "{{ 'a' % s }}", "{{ '{:>6}|{:d}'.format(t, t) }}{{ '{}'.format(none) }}", "{{ '{:>6}'.format(none) }}", "{{ '{:>6}'.format(lst) }}", "{{ [none, none]|sort }}{{ users|sort(attribute='zz')|length }}", "{{ [none, 1]|sort }}", "{{ lst|truncate(3) }}", "{{ lst|truncate(1, true, '', 0) }}",
    # what safe has marked stays marked through methods, filters, indices
    "{{ (html|safe|trim) + '<b>' }}", "{{ (html|safe|upper|lower|capitalize) + '<b>' }}", "{{ (html|safe).strip().title() + '<b>' }}", "{{ (html|safe)[1:] + '<b>' }}{{ (html|safe)[0] + '<' }}", "{{ (html|safe).split()[0] + '<b>' }}{{ (html|safe).partition('x') }}", "{{ (html|safe|replace('a', 'b')) + '<b>' }}{{ (html|safe|title) + '<b>' }}", "{{ (html|safe * 2)|e }}", "{{ (html|safe|indent|center(30)) + '<' }}",
    # refused
    "{% include 'x' %}", "{% import 'x' as y %}", "{% from 'x' import y %}", "{% extends 'x' %}", "{% do lst.append(1) %}", "{% trans %}x{% endtrans %}", "{% nope %}", "{% if t %}", "{% endif %}", "{% for x in lst %}{% endif %}", "{% if t %}{% endfor %}", "{{ n", "{{ n }", "{% if t }}", "{{ }}", "{{ 1 + }}", "{{ (1 }}", "{{ 1) }}", "{{ [1 }}", "{{ 'abc }}", "{# abc",
    "{% raw %}abc", "{% set %}", "{% for %}", "{% for x %}", "{% for x in %}", "{% macro %}", "{% macro f %}", "{{ a b }}", "{{ a.'b' }}", "{{ a[ }}", "{{ a | }}", "{{ a is }}", "{{ ? }}", "{{ a ! b }}", "{{ f(a=1, 2) }}", "{{ f(a=1, a=2) }}", "{% else %}", "{% elif t %}", "{% break %}", "{% continue %}", "{% if t %}{% break %}{% endif %}", "{{ a..b }}", "{{ 1.2.3 }}", "{{ '\\x4' }}", "{{ $ }}", "{% if %}{% endif %}", "{{ not }}", "{{ in }}",
    "{% for x in lst %}{% macro f() %}{% break %}{% endmacro %}{% endfor %}", "{% set x = %}", "{% with a %}{% endwith %}", "{% filter %}{% endfilter %}", "{% filter nope %}{% endfilter %}", "{{ s|default(missing.x) }}", "{{ [missing.x] }}", "{{ {'a': missing.x} }}",
]


SNIPPETS = ["{{ " + part.strip() + " }}" for block in (EXPRESSIONS, FILTERS, TESTS) for line in block.strip().split("\n") for part in line.split(" ;; ")]
SNIPPETS += TEMPLATES
