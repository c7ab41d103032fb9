// NVML functions that do not exist here: they say their name once and answer "not supported".

#include "simulator/shims/nvml/devices.h"

#define CB_REFUSED(name)                       \
  CB_NVML cb::sim::nvml::Return name() {       \
    static bool said;                          \
    return cb::sim::nvml::refuse(#name, said); \
  }
#include "simulator/shims/nvml/refused.inc"
#undef CB_REFUSED
