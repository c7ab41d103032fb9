#pragma once

#include <cstddef>
#include <cstdint>

#include "simulator/shims/client/wire.h"

namespace cb::sim::client {

/// nvcc's containers for device code, little-endian, as it writes them (version 1 of each).
inline constexpr uint32_t kWrapperMagic = 0x466243B1;
inline constexpr uint32_t kContainerMagic = 0xBA55ED50;

/// What __cudaRegisterFatBinary is given. Version 2 belongs to relocatable device code: `data` is
/// empty and `linked` points to a NULL-terminated array of containers.
struct FatbinWrapper {
  uint32_t magic;
  uint32_t version;
  const void* data;
  const void* const* linked;
};

struct FatbinHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header_bytes;
  uint64_t payload_bytes;
};

/// Largest container that is taken.
inline constexpr uint64_t kMaxFatbinBytes = uint64_t{1} << 30;

/// What an image handed to the API is.
enum class ImageKind { kUnknown, kContainer, kLinked, kPtxText, kCubin };

/// Looks at an image: a container, a wrapper of version 1 around one, what cuLinkComplete made, PTX
/// text, or an ELF cubin. For containers and linked images sets `data` and `bytes` to all of it,
/// for PTX text to the text with its NUL.
/// Reads no further than the headers and the text say.
ImageKind inspect_image(const void* image, const void** data, size_t* bytes);

/// Builds a container around PTX text, in malloc memory; nullptr when memory is out.
void* wrap_ptx(const char* text, size_t text_bytes, size_t* container_bytes);

/// Builds a LinkedImage of containers, in malloc memory; nullptr when memory is out or they are too
/// many or too long.
void* join_containers(const Bytes* containers, size_t count, uint32_t flags, size_t* image_bytes);

}  // namespace cb::sim::client
