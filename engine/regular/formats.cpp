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

struct Uri {
  const std::string unreserved = "A-Za-z0-9._~-", sub = "!$&'()*+,;=", percent = "%[0-9A-Fa-f]{2}";
  const std::string pchar = group("[" + sub + ":@" + unreserved + "]|" + percent);
  const std::string segments = group("/" + pchar + "*") + "*";
  const std::string name = group("[" + sub + unreserved + "]|" + percent) + "*";
  const std::string user = group("[" + sub + ":" + unreserved + "]|" + percent) + "*";
  const std::string literal = "\\[" + group(ipv6() + "|[vV][0-9A-Fa-f]+\\.[" + sub + ":" + unreserved + "]+") + "\\]";
  const std::string authority = optional(user + "@") + group(literal + "|" + name) + "(?::\\d*)?";
  const std::string rooted = "//" + authority + segments + "|/" + optional(pchar + "+" + segments);
  const std::string rest = group("[" + sub + ":@/?" + unreserved + "]|" + percent) + "*";
  const std::string ending = optional("\\?" + rest) + optional("#" + rest);

  std::string absolute() const {
    return "[A-Za-z][A-Za-z0-9+.-]*:" + optional(rooted + "|" + pchar + "+" + segments) + ending;
  }
  std::string relative() const {
    const std::string first = group("[" + sub + "@" + unreserved + "]|" + percent) + "+";  // no colon
    return optional(rooted + "|" + first + segments) + ending;
  }
};

std::string json_pointer() { return "(?:/(?:[^/~]|~[01])*)*"; }

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
  if (format == "json-pointer") return json_pointer();
  if (format == "relative-json-pointer") return "(?:0|[1-9]\\d*)(?:#|" + json_pointer() + ")";
  return "";
}

// RFC 5321 without quoted local parts and address literals: at most 64 characters before the @, 254 in all.
RegexStore::Id email(RegexStore& store) {
  const std::string atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
  const auto local = read_regex(store, atom + "(?:\\." + atom + ")*", Match::kWhole);
  return store.concat(store.both({local, store.length(1, 64)}), read_regex(store, "@" + hostname(), Match::kWhole));
}

}  // namespace

RegexStore::Id format_language(RegexStore& store, std::string_view format, std::uint64_t* max_length) {
  if (format == "email") {
    *max_length = std::min<std::uint64_t>(*max_length, 254);
    return email(store);
  }
  if (format == "hostname") *max_length = std::min<std::uint64_t>(*max_length, 253);
  const std::string pattern = pattern_of(format);
  if (pattern.empty())
    throw GrammarError("the format '" + std::string(format) + "' is not known", "", "format",
                       "Use a pattern instead, or relax the schema.");
  return read_regex(store, pattern, Match::kWhole);
}

}  // namespace ag::regular

namespace ag {

bool known_format(std::string_view format) { return format == "email" || !regular::pattern_of(format).empty(); }

}  // namespace ag
