#pragma once

// Stream memory operations (cuStreamWriteValue, cuStreamWaitValue, cuStreamBatchMemOp): a stream
// that writes a word, or that stands still until a word has the value it waits for.

namespace cb::sim {

class Call;

void stream_memory(Call& call);

}  // namespace cb::sim
