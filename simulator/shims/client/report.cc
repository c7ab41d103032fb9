#include "simulator/shims/client/report.h"

#include <unistd.h>
#include <cstdarg>
#include <cstdio>

namespace cb::sim::client {

void report(const char* format, ...) {
  static constexpr char kPrefix[] = "commbench sim: ";
  char line[1024];
  int used = snprintf(line, sizeof line, "%s", kPrefix);
  va_list args;
  va_start(args, format);
  int added = vsnprintf(line + used, sizeof line - used - 1, format, args);
  va_end(args);
  if (added < 0) return;
  int room = static_cast<int>(sizeof line) - used - 2;
  used += added < room ? added : room;
  line[used++] = '\n';
  // One write, so that lines of several ranks do not mix.
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, line, used);
}

}  // namespace cb::sim::client
