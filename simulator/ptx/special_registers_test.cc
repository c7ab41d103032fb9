#include "simulator/ptx/special_registers.h"

#include <gtest/gtest.h>

namespace cb::ptx {
namespace {

TEST(SpecialRegisters, KnowTheirTypes) {
  ASSERT_NE(find_special_register("%tid"), nullptr);
  EXPECT_TRUE(find_special_register("%tid")->is_vector);
  ASSERT_NE(find_special_register("%clock64"), nullptr);
  EXPECT_EQ(find_special_register("%clock64")->type, Type::kU64);
  EXPECT_EQ(find_special_register("%clock")->type, Type::kU32);
  EXPECT_FALSE(find_special_register("%laneid")->is_vector);
}

TEST(SpecialRegisters, NumberedOnesEndWhereTheIsaEndsThem) {
  EXPECT_NE(find_special_register("%envreg0"), nullptr);
  EXPECT_NE(find_special_register("%envreg31"), nullptr);
  EXPECT_EQ(find_special_register("%envreg32"), nullptr);
  EXPECT_EQ(find_special_register("%envreg07"), nullptr);
  EXPECT_EQ(find_special_register("%envreg"), nullptr);
  EXPECT_EQ(find_special_register("%pm3")->type, Type::kU32);
  EXPECT_EQ(find_special_register("%pm3_64")->type, Type::kU64);
  EXPECT_EQ(find_special_register("%pm8"), nullptr);
  EXPECT_EQ(find_special_register("%pm_64"), nullptr);
}

TEST(SpecialRegisters, RefuseOtherNames) {
  EXPECT_EQ(find_special_register("%tidx"), nullptr);
  EXPECT_EQ(find_special_register("tid"), nullptr);
  EXPECT_EQ(find_special_register("%"), nullptr);
  EXPECT_EQ(find_special_register(""), nullptr);
}

}  // namespace
}  // namespace cb::ptx
