#pragma once

#include <span>
#include <string_view>

namespace cb::sim {

/// A file of simulator/profiles, built into the program: the jailed daemon needs no files.
struct EmbeddedProfile {
  std::string_view name;
  std::string_view text;
};
std::span<const EmbeddedProfile> embedded_profiles();

}  // namespace cb::sim
