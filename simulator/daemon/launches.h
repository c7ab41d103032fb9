#pragma once

namespace cb::sim {

class Call;

/// Checks a launch as CUDA does, and puts the kernel into its stream.
void launch(Call& call);

}  // namespace cb::sim
