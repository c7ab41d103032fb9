#pragma once

// Streams and events: what runs after what.

#include <memory>
#include <string>
#include <vector>

#include "simulator/daemon/work.h"

namespace cb::sim {

class Call;
struct Cluster;
struct HostProcess;
struct HostThread;

/// The default streams, made when first used.
std::shared_ptr<Stream> null_stream(HostProcess& process, int device);
std::shared_ptr<Stream> thread_stream(HostThread& thread, int device);

/// Appends `work` to its stream: after the stream's last item, after what the legacy default stream
/// orders, and after `also`.
void enqueue(Cluster& cluster, HostProcess& process, const std::shared_ptr<Work>& work,
             const WorkList& also = {});
/// `work` ended at the engine's present time.
void finish(Cluster& cluster, const std::shared_ptr<Work>& work);
/// All blocks of a kernel let those start that may overlap with it.
void let_dependents_start(Cluster& cluster, const std::shared_ptr<Work>& work);
/// The last block of a kernel ended; it is done when what it overlaps with is, too.
void kernel_ended(Cluster& cluster, const std::shared_ptr<Work>& work);
/// Ends all unfinished work of the process (of one device, unless it is -1) at once.
void cancel(Cluster& cluster, HostProcess& process, int device);

/// Whether there is room for another item, with `staged` bytes. False: the call waits for it.
bool has_room(Call& call, uint64_t staged);

/// What a synchronisation with the stream waits for now.
WorkList pending_in(HostProcess& process, const Stream& stream);
WorkList pending_on(HostProcess& process, int device);

/// Waits until all of `list` is done, then `cost` longer. The answer is the context's error.
void wait_for(Call& call, WorkList list, int device, Time cost, const std::string& what);

void stream_create(Call& call);
void stream_destroy(Call& call);
void stream_sync(Call& call);
void stream_query(Call& call);
void stream_wait(Call& call);
void device_sync(Call& call);
void event_create(Call& call);
void event_destroy(Call& call);
void event_record(Call& call);
void event_sync(Call& call);
void event_query(Call& call);
void event_elapsed(Call& call);

}  // namespace cb::sim
