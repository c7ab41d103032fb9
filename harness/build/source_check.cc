// A signal with a clear message, not the enforcement: what a candidate does at run time is checked
// at run time. The line markers of preprocessed text tell who included what; a candidate could
// forge them with #line, and therefore #line is refused.
#include "harness/build/source_check.h"

#include <fnmatch.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>

#include "base/text.h"

namespace cb::build {
namespace {

// C, POSIX and the Linux headers that host code of communication libraries needs.
constexpr const char* kSystemHeaders[] = {
    "aio.h",         "alloca.h",      "arpa/inet.h", "asm/*",      "assert.h",   "byteswap.h",
    "complex.h",     "ctype.h",       "dirent.h",    "dlfcn.h",    "endian.h",   "err.h",
    "errno.h",       "execinfo.h",    "fcntl.h",     "features.h", "fenv.h",     "float.h",
    "fnmatch.h",     "getopt.h",      "glob.h",      "ifaddrs.h",  "inttypes.h", "iso646.h",
    "langinfo.h",    "libgen.h",      "limits.h",    "link.h",     "linux/*",    "locale.h",
    "malloc.h",      "math.h",        "memory.h",    "mqueue.h",   "net/if.h",   "netdb.h",
    "netinet/in.h",  "netinet/tcp.h", "poll.h",      "pthread.h",  "pwd.h",      "regex.h",
    "sched.h",       "search.h",      "semaphore.h", "setjmp.h",   "signal.h",   "spawn.h",
    "stdc-predef.h", "stdint.h",      "stdio.h",     "stdlib.h",   "string.h",   "strings.h",
    "sys/*",         "syscall.h",     "syslog.h",    "termios.h",  "tgmath.h",   "threads.h",
    "time.h",        "uchar.h",       "ucontext.h",  "unistd.h",   "utime.h",    "values.h",
    "wchar.h",       "wctype.h",
};

// A cursor over source text that joins spliced lines and counts them.
class SourceCursor {
 public:
  explicit SourceCursor(std::string_view text) : text_(text) { skip_splices(); }

  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  unsigned line() const { return line_; }
  size_t position() const { return at_; }

  char next() {
    char c = text_[at_++];
    if (c == '\n') ++line_;
    skip_splices();
    return c;
  }
  /// Raw strings keep their backslashes: moves to `position` without joining lines.
  void jump(size_t position) {
    line_ += static_cast<unsigned>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                              text_.begin() + static_cast<std::ptrdiff_t>(position),
                                              '\n'));
    at_ = position;
    skip_splices();
  }

 private:
  void skip_splices() {
    while (at_ + 1 < text_.size() && text_[at_] == '\\') {
      size_t end = at_ + 1;
      while (end < text_.size() &&
             (text_[end] == ' ' || text_[end] == '\t' || text_[end] == '\r')) {
        ++end;
      }
      if (end >= text_.size() || text_[end] != '\n') return;
      at_ = end + 1;
      ++line_;
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  unsigned line_ = 1;
};

class DirectiveScanner {
 public:
  explicit DirectiveScanner(std::string_view text) : text_(text), cursor_(text) {}

  std::vector<Directive> scan() {
    bool line_start = true;
    while (!cursor_.at_end()) {
      if (skip_comment()) continue;
      char c = cursor_.peek();
      if (c == '\n') {
        line_start = true;
        cursor_.next();
      } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
        cursor_.next();
      } else if (line_start && takes_hash()) {
        take_directive();
      } else {
        line_start = false;
        skip_token();
      }
    }
    return std::move(found_);
  }

 private:
  bool takes_hash() {
    if (cursor_.peek() == '#') {
      cursor_.next();
      return true;
    }
    if (text_.substr(cursor_.position(), 2) != "%:") return false;
    cursor_.next();
    cursor_.next();
    return true;
  }

  bool skip_comment() {
    SourceCursor saved = cursor_;
    if (cursor_.peek() != '/') return false;
    cursor_.next();
    if (cursor_.peek() == '/') {
      while (!cursor_.at_end() && cursor_.peek() != '\n') cursor_.next();
      return true;
    }
    if (cursor_.peek() != '*') {
      cursor_ = saved;
      return false;
    }
    cursor_.next();
    char previous = '\0';
    while (!cursor_.at_end()) {
      char c = cursor_.next();
      if (previous == '*' && c == '/') break;
      previous = c;
    }
    return true;
  }

  // The rest of the line, with comments as blanks. Quotes hide comments, closed or not.
  std::string take_rest() {
    std::string rest;
    while (!cursor_.at_end() && cursor_.peek() != '\n') {
      if (skip_comment()) {
        rest.push_back(' ');
        continue;
      }
      size_t start = cursor_.position();
      char c = cursor_.peek();
      if (c == '"' || c == '\'') {
        skip_quoted(c);
        rest.append(text_.substr(start, cursor_.position() - start));
      } else {
        rest.push_back(cursor_.next());
      }
      if (c == '<') hides_comment_ = hides_comment_ || opens_comment_in_header_name();
    }
    return std::string(trim(rest));
  }

  // `#if __has_include(</*>)`: to the compiler a name, to us the start of a comment.
  bool opens_comment_in_header_name() const {
    std::string_view word = text_.substr(cursor_.position());
    word = word.substr(0, word.find_first_of(" \t\n"));
    size_t comment = std::min(word.find("/*"), word.find("//"));
    return comment != std::string_view::npos && word.find('>', comment) != std::string_view::npos;
  }

  void take_directive() {
    Directive directive;
    directive.line = cursor_.line();
    std::string rest = take_rest();
    size_t end = 0;
    while (end < rest.size() &&
           (std::isalnum(static_cast<unsigned char>(rest[end])) != 0 || rest[end] == '_')) {
      ++end;
    }
    directive.name = rest.substr(0, end);
    directive.rest = std::string(trim(std::string_view(rest).substr(end)));
    bool number = !directive.name.empty() &&
                  std::isdigit(static_cast<unsigned char>(directive.name.front())) != 0;
    if (number || hides_comment_) directive.name = "line";
    hides_comment_ = false;
    found_.push_back(std::move(directive));
  }

  void skip_token() {
    char c = cursor_.peek();
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      std::string word;
      while (std::isalnum(static_cast<unsigned char>(cursor_.peek())) != 0 ||
             cursor_.peek() == '_') {
        word.push_back(cursor_.next());
      }
      // A digit separator, as in 1'000, is not the start of a character.
      if (std::isdigit(static_cast<unsigned char>(word.front())) != 0) {
        while (cursor_.peek() == '\'') cursor_.next();
      } else if (cursor_.peek() == '"' && word.back() == 'R') {
        skip_raw_string();
      }
      return;
    }
    if (c == '"' || c == '\'') {
      skip_quoted(c);
    } else {
      cursor_.next();
    }
  }

  void skip_quoted(char quote) {
    cursor_.next();
    while (!cursor_.at_end() && cursor_.peek() != '\n') {
      char c = cursor_.next();
      if (c == quote) return;
      if (c == '\\' && !cursor_.at_end() && cursor_.peek() != '\n') cursor_.next();
    }
  }

  void skip_raw_string() {
    size_t open = text_.find('(', cursor_.position());
    if (open == std::string_view::npos) {
      cursor_.next();
      return;
    }
    size_t delimiter = cursor_.position() + 1;
    std::string close = ")" + std::string(text_.substr(delimiter, open - delimiter)) + "\"";
    size_t end = text_.find(close, open);
    cursor_.jump(end == std::string_view::npos ? text_.size() : end + close.size());
  }

  std::string_view text_;
  SourceCursor cursor_;
  bool hides_comment_ = false;
  std::vector<Directive> found_;
};

struct LineMarker {
  unsigned line = 0;
  std::string file;
  bool enters = false;
  bool returns = false;
};

// `# 12 "file" 1 3`; nothing for other lines.
std::optional<LineMarker> parse_marker(std::string_view line) {
  if (line.size() < 5 || line[0] != '#' || line[1] != ' ') return std::nullopt;
  LineMarker marker;
  size_t at = 2;
  while (at < line.size() && std::isdigit(static_cast<unsigned char>(line[at])) != 0) {
    marker.line = marker.line * 10 + static_cast<unsigned>(line[at++] - '0');
  }
  if (at == 2 || line.substr(at, 2) != " \"") return std::nullopt;
  at += 2;
  while (at < line.size() && line[at] != '"') {
    if (line[at] == '\\' && at + 1 < line.size()) ++at;
    marker.file.push_back(line[at++]);
  }
  std::string_view flags = line.substr(std::min(at + 1, line.size()));
  marker.enters = flags.find(" 1") == 0;
  marker.returns = flags.find(" 2") == 0;
  return marker;
}

// The name that an `.extern .func (results) name` line declares; the parameters may follow.
std::string_view declared_function(std::string_view line) {
  size_t results_end = line.find(')');
  size_t open = line.find('(');
  bool has_results =
      open != std::string_view::npos && trim(line.substr(0, open)) == ".extern .func";
  std::string_view rest = line.substr(has_results ? results_end + 1 : 13);
  rest = trim(rest.substr(0, rest.find('(')));
  return rest;
}

}  // namespace

std::vector<Directive> scan_directives(std::string_view source) {
  return DirectiveScanner(source).scan();
}

std::vector<Inclusion> inclusions_from(std::string_view preprocessed, std::string_view folder) {
  std::vector<Inclusion> found;
  std::string file;
  unsigned line = 0;
  size_t start = 0;
  while (start < preprocessed.size()) {
    size_t end = std::min(preprocessed.find('\n', start), preprocessed.size());
    if (auto marker = parse_marker(preprocessed.substr(start, end - start))) {
      if (marker->enters && std::string_view(file).starts_with(folder)) {
        found.push_back({file, line, marker->file});
      }
      file = marker->file;
      line = marker->line;
    } else {
      ++line;
    }
    start = end + 1;
  }
  return found;
}

std::string header_name(const std::string& path) {
  size_t cxx = path.find("/c++/");
  size_t include = path.rfind("/include/");
  std::string name = path;
  if (cxx != std::string::npos && path.find('/', cxx + 5) != std::string::npos) {
    name = path.substr(path.find('/', cxx + 5) + 1);
  } else if (include != std::string::npos) {
    name = path.substr(include + 9);
  }
  for (const char* prefix : {"x86_64-linux-gnu/", "cccl/"}) {
    if (name.starts_with(prefix)) name = name.substr(std::string_view(prefix).size());
  }
  return name;
}

std::string why_forbidden(const std::string& header, const IncludePolicy& policy) {
  std::string path = std::filesystem::path(header).lexically_normal().string();
  if (path.starts_with("/box/src/")) return "";
  std::string name = header_name(path);
  if (matches_any(name, policy.forbidden)) return "the task forbids it";
  auto links = [&policy](const char* library) {
    return std::find(policy.links.begin(), policy.links.end(), library) != policy.links.end();
  };
  bool of_nccl = path.starts_with("/box/cuda/") && name.starts_with("nccl");
  if (of_nccl && !links("nccl")) return "the task does not link nccl";
  bool of_nvrtc = path.starts_with("/box/cuda/") && name == "nvrtc.h";
  if (of_nvrtc && !links("nvrtc")) return "the task does not link nvrtc";
  bool of_verbs = path.starts_with("/usr/") && name.starts_with("infiniband/");
  if (of_verbs && !links("ibverbs")) return "the task does not link ibverbs";
  bool of_compiler = path.starts_with("/usr/lib/gcc/") || path.find("/c++/") != std::string::npos;
  if (of_verbs || of_compiler || path.starts_with("/box/include/") ||
      path.starts_with("/box/cuda/")) {
    return "";
  }
  std::vector<std::string> system(std::begin(kSystemHeaders), std::end(kSystemHeaders));
  if (path.starts_with("/usr/include/") && matches_any(name, system)) return "";
  return "only CUDA, C++, POSIX and commbench headers are allowed";
}

bool matches_any(const std::string& name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&name](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  });
}

std::string forbidden_device_call(std::string_view ptx) {
  size_t start = 0;
  while ((start = ptx.find(".extern .func", start)) != std::string_view::npos) {
    size_t end = std::min(ptx.find('\n', start), ptx.size());
    std::string_view name = declared_function(ptx.substr(start, end - start));
    if (name == "malloc" || name == "free") return "device-side malloc, free, new or delete";
    if (name.starts_with("cudaLaunchDevice") || name.starts_with("cudaGetParameterBuffer")) {
      return "dynamic parallelism (a kernel that launches kernels)";
    }
    start = end;
  }
  return "";
}

}  // namespace cb::build
