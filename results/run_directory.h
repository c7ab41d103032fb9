#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "results/record.h"

namespace cb::results {

/// runs/<id>/: manifest.json, records.jsonl and attempts/<task>/<n>/. For one writer.
class RunDirectory {
 public:
  /// Makes a new folder below `parent` whose name holds the date, and writes the manifest into it
  /// first. `id` and `created` (UTC) are added to the manifest. Throws Error(kSystem).
  static RunDirectory create(const std::string& parent, Json manifest);

  /// Opens a run to go on with it. A torn last record is cut off. Throws Error(kUsage) for a folder
  /// that is no run directory.
  static RunDirectory open(const std::string& path);

  const Json& manifest() const { return *manifest_; }
  const std::string& path() const { return path_; }
  const std::string& id() const { return id_; }

  /// Appends one line to records.jsonl; it is on the disk when this returns. Throws
  /// Error(kSystem).
  void append(const Record& record);
  /// attempts/<task>/<n>/, made if need be. Throws Error(kSystem).
  std::string attempt_folder(const std::string& task, int attempt) const;
  /// Adds keys to the manifest, such as the run key when the run is over. Throws Error(kSystem).
  void extend_manifest(const Json& more);

 private:
  RunDirectory(std::string path, std::string id, Json manifest);

  std::string path_;
  std::string id_;
  std::unique_ptr<Json> manifest_;
  std::unique_ptr<DurableLog> records_;
};

/// The manifest of a run directory.
Result<Json> read_manifest(const std::string& run_path);
/// The records of a run directory, oldest first. A torn last line is ignored; any other line that
/// is no record is an Error(kConfig) with its number.
Result<std::vector<Record>> read_records(const std::string& run_path);

}  // namespace cb::results
