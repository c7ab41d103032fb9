#include "simulator/shims/cudart/error_table.h"

namespace cb::sim::client {
namespace {

struct ErrorEntry {
  int code;
  const char* name;
  const char* text;
};

constexpr ErrorEntry kErrors[] = {
#define CB_ERROR(code, name, text) {code, name, text},
#include "simulator/shims/cudart/errors.inc"
#undef CB_ERROR
};

const ErrorEntry* entry_of(int code) {
  for (const ErrorEntry& entry : kErrors) {
    if (entry.code == code) return &entry;
  }
  return nullptr;
}

constexpr char kUnrecognized[] = "unrecognized error code";

}  // namespace

const char* error_name(cudaError_t error) {
  const ErrorEntry* entry = entry_of(error);
  return entry == nullptr ? kUnrecognized : entry->name;
}

const char* error_text(cudaError_t error) {
  const ErrorEntry* entry = entry_of(error);
  return entry == nullptr ? kUnrecognized : entry->text;
}

bool is_error_code(int code) { return entry_of(code) != nullptr; }

}  // namespace cb::sim::client
