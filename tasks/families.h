#pragma once

#include "tasks/family.h"

/// The families that exist; find_family knows them by name.
namespace cb::tasks {

const Family* collective_family();
const Family* p2p_family();
const Family* utility_family();

}  // namespace cb::tasks
