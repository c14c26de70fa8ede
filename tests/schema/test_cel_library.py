"""Kubernetes' function libraries.

TRUE and FALSE were compared with kube-apiserver 1.36.4, but for the few that its estimate of costs
refuses, and `sign`, which it documents and does not offer.
"""

from __future__ import annotations

import pytest

from fairway.schema.cel.environment import EvaluationError, compile

TRUE = (
    # lists
    "[1, 2, 2].isSorted() && ['a', 'b'].isSorted() && [].isSorted()",
    "[3, 1, 2].sum() == 6 && [3, 1, 2].min() == 1 && ['a', 'c'].max() == 'c'",
    "[].sum() == 0 && [1.5, 1.0].sum() == 2.5",
    "[3, 1, 1].indexOf(1) == 1 && [3, 1, 1].lastIndexOf(1) == 2 && [1].indexOf(9) == -1",
    "'abc'.indexOf('c') == 2 && 'abca'.lastIndexOf('a') == 3",
    "[3, 1, 2].sort() == [1, 2, 3] && [1, 1].distinct() == [1] && lists.range(2) == [0, 1]",
    "[1, 2, 3].slice(0, 2) == [1, 2] && [[1], [2]].flatten() == [1, 2]",
    "[3, 1].exists(place, one, place == one) && [3, 1].transformList(i, v, v + i) == [3, 2]",
    "{'k': 'v'}.all(key, value, value != key)",
    "{'k': 'v'}.transformMap(key, value, value + 'x') == {'k': 'vx'}",
    # sets
    "sets.contains([1, 2], [2]) && sets.equivalent([1], [1, 1]) && sets.intersects([1], [1, 2])",
    # regular expressions
    "'hello World'.find('[A-Z].*') == 'World' && 'abc'.find('x') == ''",
    "'a1b22'.findAll('[0-9]+', 1) == ['1'] && 'a1b22'.findAll('[0-9]+') == ['1', '22']",
    "'12 a'.findAll('[0-9]*') == ['12', '', '']",
    # quantities
    "quantity('1.5Gi').compareTo(quantity('1536Mi')) == 0 && quantity('1') == quantity('1000m')",
    "quantity('50k').add(20).sub(quantity('100k')).sub(-50000) == quantity('20')",
    "quantity('50k').asInteger() == 50000 && quantity('1').asApproximateFloat() == 1.0",
    "quantity('2').isGreaterThan(quantity('1500m')) && quantity('1').isLessThan(quantity('1k'))",
    "quantity('-1').sign() == -1 && quantity('0').sign() == 0",
    "isQuantity('1e3') && isQuantity('1.') && quantity('1k').isInteger()",
    # addresses
    "url('https://user:pass@example.com:80/path?query=val#fragment').getHost() == 'example.com:80'",
    "url('https://example.com/a b/').getEscapedPath() == '/a%20b/'",
    "url('https://e.com/p?k=a&k=b&a b=c d').getQuery() == {'k': ['a', 'b'], 'a b': ['c d']}",
    "url('https://[::1]/').getHost() == '[::1]' && url('https://[::1]:8/').getHostname() == '::1'",
    "url('/p').getScheme() == '' && url('/p').getHost() == '' && url('//h:1/p').getPort() == '1'",
    "isURL('mailto:a@b') && isURL('/p') && url('HTTP://X.com:').getScheme() == 'http'",
    "ip('fe80::1').isLinkLocalUnicast() && ip('ff02::1').isLinkLocalMulticast()",
    "ip('224.0.0.1').isLinkLocalMulticast() && !ip('224.0.1.1').isLinkLocalMulticast()",
    "ip('192.168.0.1').isGlobalUnicast() && !ip('255.255.255.255').isGlobalUnicast()",
    "ip('::').isUnspecified() && ip('127.9.9.9').isLoopback() && ip('::1').family() == 6",
    "string(ip('2001:DB8::0:1')) == '2001:db8::1' && !ip.isCanonical('2001:DB8::1')",
    "cidr('192.168.0.1/24') != cidr('192.168.0.0/24')",
    "string(cidr('10.0.0.1/8')) == '10.0.0.1/8'",
    "cidr('192.168.0.0/16').containsCIDR('192.168.10.0/24')",
    "!cidr('192.168.1.0/24').containsCIDR(cidr('192.168.0.0/16'))",
    "cidr('192.168.0.1/24').masked() == cidr('192.168.0.0/24') && isCIDR('::1/128')",
    "cidr('10.0.0.0/8').containsIP('10.1.1.1') && !cidr('::1/128').containsIP(ip('::2'))",
    "cidr('192.168.0.1/24').ip() == ip('192.168.0.1') && cidr('::1/99').prefixLength() == 99",
    # formats
    "!format.dns1123Label().validate('my-label').hasValue()",
    "format.dns1123Label().validate('A)(').value().size() == 1",
    "format.dns1035Label().validate('1a').hasValue()",
    "format.dns1123LabelPrefix().validate('a-') == optional.none()",
    "!format.qualifiedName().validate('a.b/c_d').hasValue()",
    "format.qualifiedName().validate('a/b/c').hasValue()",
    "!format.labelValue().validate('').hasValue() && format.labelValue().validate('-').hasValue()",
    "!format.uuid().validate('123e4567-e89b-12d3-a456-426614174000').hasValue()",
    "format.date().validate('2024-02-30').hasValue()",
    "!format.datetime().validate('2021-01-01T00:00:00Z').hasValue()",
    "format.byte().validate('a').hasValue() && format.uri().validate('x').hasValue()",
    "!format.named('dns1123Label').value().validate('a').hasValue()",
    "!format.named('zz').hasValue()",
    "'.validate(' == '.validate' + '(' && format.uri().validate('/)').orValue([]) == []",
    # versions
    "semver('1.0.0-alpha.2').isLessThan(semver('1.0.0-alpha.10'))",
    "semver('1.0.0').isGreaterThan(semver('1.0.0-rc')) && semver('1.0.0+a') == semver('1.0.0+b')",
    "isSemver('v1.0', true) && !isSemver('v1.0') && !isSemver('1.0.0-01')",
    "semver('01.02', true).minor() == 2 && semver('3.4.5').major() + semver('3.4.5').patch() == 8",
    "semver('v1.2.3-rc.1', true).compareTo(semver('1.2.3')) == -1",
    # the language itself
    "'%s-%d-%.1f'.format(['a', 3, 2.0]) == 'a-3-2.0' && ['a', 'b'].join(',') == 'a,b'",
    "{'a': 1}.?b.orValue(2) == 2 && {'a': 1}[?'a'].hasValue()",
    "timestamp('2024-01-01T00:00:00Z') + duration('24h') == timestamp('2024-01-02T00:00:00Z')",
)
FALSE = (
    "[2, 1].isSorted()",
    "isQuantity('200K') || isQuantity('Three') || quantity('500m').isInteger()",
    "quantity('9999999999999999999999999999999999999G').isInteger()",
    "isURL('https://a:b:c/') || isURL('../relative-path') || isURL('https://a b/') || isURL('')",
    "isIP('01.2.3.4') || isIP('::ffff:1.2.3.4') || isIP('fe80::1%eth0') || isIP('1.2.3.256')",
    "isCIDR('10.0.0.0/08') || isCIDR('10.0.0.0/33') || isCIDR('10.0.0.0') || isCIDR('a/8')",
    "isSemver('1.0') || isSemver('1.2.3.4') || isSemver('01.2.3')",
)
FAILING = {
    "[].min()": "min called on empty list",
    "[dyn(1), dyn('a')].max()": "no such overload",
    "['a'].sum()": "no such overload",
    "[9223372036854775807, 1].sum()": "integer overflow",
    "'a'.find('(')": "Illegal regex",
    "quantity('Three')": "is not a quantity",
    "quantity('500m').asInteger()": "cannot convert value to integer",
    "quantity('1').isLessThan(semver('1.0.0'))": "no such overload",
    "semver('1.0')": "is not a semantic version",
    "ip('1.2.3.256')": "does not appear to be",
    "cidr('10.0.0.0/33')": "is not a valid netmask|does not appear to be",
    "url('../x')": "invalid URI for request",
    "{'a': 1}.family()": "no such overload",
}


@pytest.mark.parametrize("expression", TRUE)
def test_true(expression: str) -> None:
    assert compile(expression, {}).evaluate({}) is True


@pytest.mark.parametrize("expression", FALSE)
def test_false(expression: str) -> None:
    assert compile(expression, {}).evaluate({}) is False


@pytest.mark.parametrize(("expression", "message"), FAILING.items(), ids=FAILING)
def test_failing(expression: str, message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        compile(expression, {}).evaluate({})
