# Writes the profiles as strings of a C++ file. INPUTS is a list of files, OUTPUT the result.
set(entries "")
foreach(file ${INPUTS})
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} text)
  string(APPEND entries "    {\"${name}\", R\"yaml(${text})yaml\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"simulator/timing/embedded_profiles.h\"\n
namespace cb::sim {
namespace {
constexpr EmbeddedProfile kProfiles[] = {
${entries}};
}  // namespace
std::span<const EmbeddedProfile> embedded_profiles() { return kProfiles; }
}  // namespace cb::sim
")
