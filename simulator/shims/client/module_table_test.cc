#include "simulator/shims/client/module_table.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "simulator/shims/client/modules.h"

namespace cb::sim::client {
namespace {

template <class T>
std::string bytes_of(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

struct Table {
  ModuleTable header;
  KernelInfo kernel;
  VariableInfo variable;
  ParamInfo param;
  std::string names = std::string("kern\0var\0", 9);

  Table() {
    header.num_kernels = header.num_variables = header.num_params = 1;
    header.names_bytes = 9;
    kernel.num_params = 1;
    kernel.param_bytes = 8;
    variable.name_offset = 5;
    variable.bytes = 100;
    param.bytes = 8;
  }
  std::string bytes() const {
    return bytes_of(header) + bytes_of(kernel) + bytes_of(variable) + bytes_of(param) + names;
  }
};

const char* read(const std::string& bytes, Module* module) {
  return read_module_table(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), module);
}

TEST(ModuleTable, IsReadAsSent) {
  Module module;
  ASSERT_EQ(read(Table().bytes(), &module), nullptr);
  EXPECT_STREQ(name_of(module, module.kernels[0]), "kern");
  EXPECT_STREQ(module.names + module.variables[0].name_offset, "var");
  EXPECT_EQ(module.variables[0].bytes, 100u);
  EXPECT_EQ(module.params[0].bytes, 8u);
  free(module.table);
}

TEST(ModuleTable, EveryOffsetIsChecked) {
  auto fault_of = [](auto change) {
    Table table;
    change(table);
    Module module;
    const char* fault = read(table.bytes(), &module);
    EXPECT_EQ(module.table, nullptr);
    return fault;
  };
  EXPECT_NE(fault_of([](Table& t) { t.header.num_kernels = 2; }), nullptr);
  EXPECT_NE(fault_of([](Table& t) { t.header.num_params = 0xffffffff; }), nullptr);
  EXPECT_NE(fault_of([](Table& t) { t.names.back() = 'x'; }), nullptr);
  EXPECT_NE(fault_of([](Table& t) { t.kernel.name_offset = 9; }), nullptr);
  EXPECT_NE(fault_of([](Table& t) { t.kernel.first_param = 1; }), nullptr);
  EXPECT_NE(fault_of([](Table& t) { t.kernel.num_params = 2; }), nullptr);
  EXPECT_NE(fault_of([](Table& t) { t.kernel.param_bytes = 1 << 20; }), nullptr);
  EXPECT_NE(fault_of([](Table& t) { t.param.offset = 4; }), nullptr);
  EXPECT_NE(fault_of([](Table& t) { t.param.bytes = 0xffffffff; }), nullptr);
  EXPECT_NE(fault_of([](Table& t) { t.variable.name_offset = 1000; }), nullptr);
}

TEST(ModuleTable, AShortOneIsRefused) {
  Module module;
  EXPECT_NE(read("", &module), nullptr);
  EXPECT_NE(read(Table().bytes().substr(0, 30), &module), nullptr);
}

}  // namespace
}  // namespace cb::sim::client
