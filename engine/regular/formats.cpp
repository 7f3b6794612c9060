#include "regular/formats.h"

#include <algorithm>
#include <string>

#include "regular/regex_reader.h"
#include "regular/terminals.h"

namespace ag::regular {

namespace {

std::string group(const std::string& inner) { return "(?:" + inner + ")"; }
std::string optional(const std::string& inner) { return group(inner) + "?"; }

// RFC 3339 full-date in the proleptic Gregorian calendar, years 0001 to 9999.
std::string date() {
  const std::string year = "(?:[1-9]\\d{3}|0[1-9]\\d{2}|00[1-9]\\d|000[1-9])";
  const std::string fours = "0[48]|[2468][048]|[13579][26]";  // two digits divisible by four, but 00
  const std::string leap = group("\\d{2}(?:" + fours + ")|(?:" + fours + ")00");
  const std::string day = group(
      "(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2[0-8])");
  return group(year + "-" + day + "|" + leap + "-02-29");
}

// RFC 3339 full-time. Leap seconds are left out: whether one exists depends on the date and on tables.
std::string time() {
  const std::string minutes = "(?:[01]\\d|2[0-3]):[0-5]\\d";
  return minutes + ":[0-5]\\d(?:\\.\\d+)?(?:[Zz]|[+-]" + minutes + ")";
}

// RFC 3339, appendix A.
std::string duration() {
  const std::string minute = "\\d+M(?:\\d+S)?", hour = "\\d+H" + optional(minute);
  const std::string clock = "T" + group(hour + "|" + minute + "|\\d+S");
  const std::string month = "\\d+M(?:\\d+D)?", year = "\\d+Y" + optional(month);
  return "P" + group(group("\\d+D|" + month + "|" + year) + optional(clock) + "|" + clock + "|\\d+W");
}

// RFC 1123 and RFC 1034: labels of at most 63 characters.
std::string hostname() {
  const std::string label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
  return label + "(?:\\." + label + ")*";
}

std::string ipv4() {
  const std::string octet = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
  return octet + "(?:\\." + octet + "){3}";
}

// RFC 3986, IPv6address: at most seven groups around one "::", or eight; the last two may be an IPv4 address.
std::string ipv6() {
  const std::string h = "[0-9A-Fa-f]{1,4}", last = group(h + ":" + h + "|" + ipv4());
  std::string out = group(h + ":") + "{6}" + last;
  for (int before = 0; before <= 5; ++before) {  // groups before "::" at most; 5 - before and the last two after it
    const std::string left = before == 0 ? "" : optional(group(h + ":") + "{0," + std::to_string(before - 1) + "}" + h);
    out += "|" + left + "::" + group(h + ":") + "{" + std::to_string(5 - before) + "}" + last;
  }
  out += "|" + optional(group(h + ":") + "{0,5}" + h) + "::" + h;
  return group(out + "|" + optional(group(h + ":") + "{0,6}" + h) + "::");
}

// RFC 3986; with `iri`, RFC 3987's further characters.
constexpr char kUcs[] =  // RFC 3987, ucschar
    "\\u{a0}-\\u{d7ff}\\u{f900}-\\u{fdcf}\\u{fdf0}-\\u{ffef}\\u{10000}-\\u{1fffd}\\u{20000}-\\u{2fffd}\\u{30000}-\\u{"
    "3fffd}"
    "\\u{40000}-\\u{4fffd}\\u{50000}-\\u{5fffd}\\u{60000}-\\u{6fffd}\\u{70000}-\\u{7fffd}\\u{80000}-\\u{8fffd}"
    "\\u{90000}-\\u{9fffd}\\u{a0000}-\\u{afffd}\\u{b0000}-\\u{bfffd}\\u{c0000}-\\u{cfffd}\\u{d0000}-\\u{dfffd}"
    "\\u{e1000}-\\u{efffd}";
constexpr char kPrivate[] = "\\u{e000}-\\u{f8ff}\\u{f0000}-\\u{ffffd}\\u{100000}-\\u{10fffd}";

struct Uri {
  explicit Uri(bool with_iri = false) : iri(with_iri) {}
  const bool iri;
  const std::string further = iri ? kUcs : "", in_query = iri ? std::string(kUcs) + kPrivate : "";
  const std::string unreserved = further + "A-Za-z0-9._~-", sub = "!$&'()*+,;=", percent = "%[0-9A-Fa-f]{2}";
  const std::string pchar = group("[" + sub + ":@" + unreserved + "]|" + percent);
  const std::string segments = group("/" + pchar + "*") + "*";
  const std::string name = group("[" + sub + unreserved + "]|" + percent) + "*";
  const std::string user = group("[" + sub + ":" + unreserved + "]|" + percent) + "*";
  const std::string literal = "\\[" + group(ipv6() + "|[vV][0-9A-Fa-f]+\\.[" + sub + ":" + unreserved + "]+") + "\\]";
  const std::string authority = optional(user + "@") + group(literal + "|" + name) + "(?::\\d*)?";
  const std::string rooted = "//" + authority + segments + "|/" + optional(pchar + "+" + segments);
  const std::string rest = group("[" + sub + ":@/?" + unreserved + "]|" + percent) + "*";
  const std::string query = group("[" + in_query + sub + ":@/?" + unreserved + "]|" + percent) + "*";
  const std::string ending = optional("\\?" + query) + optional("#" + rest);

  std::string absolute() const {
    return "[A-Za-z][A-Za-z0-9+.-]*:" + optional(rooted + "|" + pchar + "+" + segments) + ending;
  }
  std::string relative() const {
    const std::string first = group("[" + sub + "@" + unreserved + "]|" + percent) + "+";  // no colon
    return optional(rooted + "|" + first + segments) + ending;
  }
};

std::string json_pointer() { return "(?:/(?:[^/~]|~[01])*)*"; }

// RFC 6570 without the operators that it keeps for later.
std::string uri_template() {
  const std::string percent = "%[0-9A-Fa-f]{2}", var = group("[A-Za-z0-9_]|" + percent);
  const std::string spec = var + group("\\.?" + var) + "*" + optional(":[1-9]\\d{0,3}|\\*");
  const std::string literal = std::string("[!#$&-;=?-\\[\\]_a-z~") + kUcs + kPrivate + "]";
  return group(literal + "|" + percent + "|\\{[+#./;?&]?" + spec + group("," + spec) + "*\\}") + "*";
}

// Internationalised host names (RFC 5890) of scripts whose letters have no rules about their neighbours or direction,
// and of labels so short that their ASCII form has at most 63 characters.
std::string idn_hostname() {
  const std::string letters =
      "a-z0-9\\u{df}-\\u{f6}\\u{f8}-\\u{ff}\\u{3ac}-\\u{3ce}\\u{430}-\\u{45f}\\u{3041}-\\u{3094}\\u{30a1}-\\u{30f4}\\u{"
      "4e00}-\\u{9fa5}"
      "\\u{ac00}-\\u{d7a3}";
  const std::string foreign = "[" + letters + "](?:[" + letters + "-]{0,12}[" + letters + "])?";
  const std::string ascii = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
  const std::string label = group(foreign + "|" + ascii);
  return label + group("[.\\u{3002}\\u{ff0e}\\u{ff61}]" + label) + "*";
}

// Regular expressions (ECMA-262 with the u flag) whose groups nest at most three deep, without names and references,
// and with counts and ranges that can be seen to be in order.
std::string regex() {
  std::string range;
  for (const std::string& letters : {std::string("0123456789"), std::string("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
                                     std::string("abcdefghijklmnopqrstuvwxyz")}) {
    for (const char c : letters)
      range.append(range.empty() ? "" : "|").append({c, '-', '[', c, '-', letters.back(), ']'});
  }
  const std::string hex = "[0-9A-Fa-f]";
  const std::string escape = "\\\\(?:[dDwWsSfnrtv^$.*+?()\\[\\]{}|/\\\\]|x" + hex + "{2}|u" + hex +
                             "{4}|c[A-Za-z]|[pP]\\{(?:L|Lu|Ll|N|Nd|P|S|Z)\\})";
  const std::string item = "(?:" + range + "|[^\\\\\\]\\[-]|" + escape + ")";
  const std::string set = "\\[\\^?-?" + item + "*-?\\]";
  std::string bounds = "\\d{1,3},?|\\d,[1-9]\\d{1,2}|[1-9]\\d,[1-9]\\d{2}";  // n, or n and a greater m
  const std::string digits = "0123456789";
  for (const char n : digits) bounds.append({'|', n, ',', '[', n, '-', '9', ']'});
  for (const char tens : digits.substr(1)) {
    for (const char n : digits) bounds.append({'|', tens, n, ',', tens, '[', n, '-', '9', ']'});
    if (tens != '9')
      bounds.append({'|', tens}).append("\\d,[").append({static_cast<char>(tens + 1), '-', '9', ']'}).append("\\d");
  }
  const std::string count = "(?:[*+?]|\\{(?:" + bounds + ")\\})\\??";
  const std::string atom = "(?:[^\\^$\\\\.*+?()\\[\\]{}|]|\\.|" + escape + "|" + set + ")";
  const std::string assertion = "[$^]|\\\\[bB]";
  std::string body = group(atom + optional(count) + "|" + assertion + "|\\|") + "*";
  for (int depth = 0; depth < 3; ++depth) {
    body = group(atom + optional(count) + "|" + assertion + "|\\||\\((?:\\?:)?" + body + "\\)" + optional(count) +
                 "|\\(\\?<?[=!]" + body + "\\)") +
           "*";
  }
  return body;
}

std::string pattern_of(std::string_view format) {
  if (format == "date") return date();
  if (format == "time") return time();
  if (format == "date-time") return date() + "[Tt]" + time();
  if (format == "duration") return duration();
  if (format == "uuid") return "[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}";
  if (format == "hostname") return hostname();
  if (format == "ipv4") return ipv4();
  if (format == "ipv6") return ipv6();
  if (format == "uri") return Uri().absolute();
  if (format == "uri-reference") return Uri().absolute() + "|" + Uri().relative();
  if (format == "iri") return Uri(true).absolute();
  if (format == "iri-reference") return Uri(true).absolute() + "|" + Uri(true).relative();
  if (format == "uri-template") return uri_template();
  if (format == "idn-hostname") return idn_hostname();
  if (format == "regex") return regex();
  if (format == "json-pointer") return json_pointer();
  if (format == "relative-json-pointer") return "(?:0|[1-9]\\d*)(?:#|" + json_pointer() + ")";
  return "";
}

// Hosts without labels that have "--" in the third and fourth place: what they stand for in Punycode cannot be checked.
RegexStore::Id host_language(RegexStore& store, const std::string& pattern) {
  const auto coded = read_regex(store, "(?:^|[.\\u{3002}\\u{ff0e}\\u{ff61}])[^.]{2}--", Match::kSearch);
  return store.both({read_regex(store, pattern, Match::kWhole), store.negate(coded)});
}

// RFC 5321 without quoted local parts and address literals: at most 64 characters before the @, 254 in all.
// With `wide`, RFC 6531's further characters in the local part, and internationalised hosts.
RegexStore::Id email(RegexStore& store, bool wide) {
  const std::string atom = std::string("[A-Za-z0-9!#$%&'*+/=?^_`{|}~") + (wide ? "\\u{80}-\\u{10ffff}" : "") + "-]+";
  const auto local = read_regex(store, atom + "(?:\\." + atom + ")*", Match::kWhole);
  const auto host = host_language(store, wide ? idn_hostname() : hostname());
  return store.concat(store.both({local, store.length(1, wide ? 16 : 64)}), store.concat(store.text("@"), host));
}

}  // namespace

RegexStore::Id format_language(RegexStore& store, std::string_view format, std::uint64_t* max_length) {
  if (format == "email" || format == "idn-email") {
    *max_length = std::min<std::uint64_t>(*max_length, 254);
    return email(store, format == "idn-email");
  }
  const std::string pattern = pattern_of(format);
  if (format == "hostname" || format == "idn-hostname") {
    *max_length = std::min<std::uint64_t>(*max_length, 253);
    return host_language(store, pattern);
  }
  if (pattern.empty())
    throw GrammarError("the format '" + std::string(format) + "' is not known", "", "format",
                       "Use a pattern instead, or relax the schema.");
  return read_regex(store, pattern, Match::kWhole);
}

}  // namespace ag::regular

namespace ag {

bool known_format(std::string_view format) {
  static constexpr std::string_view kKnown[] = {
      "date",          "time",     "date-time",     "duration",     "uuid",         "email",
      "idn-email",     "hostname", "idn-hostname",  "ipv4",         "ipv6",         "uri",
      "uri-reference", "iri",      "iri-reference", "uri-template", "json-pointer", "relative-json-pointer",
      "regex"};
  return std::find(std::begin(kKnown), std::end(kKnown), format) != std::end(kKnown);
}

}  // namespace ag
