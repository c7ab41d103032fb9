#include "simulator/client/daemon_options.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace cb::sim {
namespace {

void read_key(const std::string& key, const Json& value, DaemonOptions& options) {
  if (key == "profile") {
    options.profile = value.get<std::string>();
  } else if (key == "world_size") {
    options.world_size = value.get<int>();
  } else if (key == "timed") {
    options.timed = value.get<bool>();
  } else if (key == "fatbin_sha256") {
    options.fatbin_sha256 = value.get<std::vector<std::string>>();
  } else if (key == "any_code") {
    options.any_code = value.get<bool>();
  } else if (key == "symmetric_bytes_max") {
    options.symmetric_bytes_max = value.get<uint64_t>();
  } else if (key == "seed") {
    options.seed = value.get<uint64_t>();
  } else if (key == "wall_limit_ms") {
    options.wall_limit_ms = value.get<uint64_t>();
  } else if (key == "count_lines") {
    options.count_lines = value.get<bool>();
  } else if (key == "record_timeline") {
    options.record_timeline = value.get<bool>();
  } else {
    throw Error(ErrorCode::kConfig, fmt::format("daemon options: unknown key \"{}\"", key));
  }
}

}  // namespace

std::string to_text(const DaemonOptions& options) {
  Json json;
  json["profile"] = options.profile;
  json["world_size"] = options.world_size;
  json["timed"] = options.timed;
  json["fatbin_sha256"] = options.fatbin_sha256;
  json["any_code"] = options.any_code;
  json["symmetric_bytes_max"] = options.symmetric_bytes_max;
  json["seed"] = options.seed;
  json["wall_limit_ms"] = options.wall_limit_ms;
  json["count_lines"] = options.count_lines;
  json["record_timeline"] = options.record_timeline;
  return dump_json(json);
}

Result<DaemonOptions> daemon_options_from_text(std::string_view text) {
  Result<Json> json = parse_json(text, "daemon options");
  if (!json) return tl::unexpected<Error>(json.error());
  if (!json->is_object()) return failure(ErrorCode::kConfig, "daemon options: not an object");
  DaemonOptions options;
  for (const auto& [key, value] : json->items()) {
    try {
      read_key(key, value, options);
    } catch (const nlohmann::json::exception& error) {
      return failure(ErrorCode::kConfig, fmt::format("daemon options: {}: {}", key, error.what()));
    } catch (const Error& error) {
      return tl::unexpected<Error>(error);
    }
  }
  return options;
}

}  // namespace cb::sim
