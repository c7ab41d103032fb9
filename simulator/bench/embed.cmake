# Writes a text file as a C++ string.
file(READ ${INPUT} text)
string(REPLACE "\\" "\\\\" text "${text}")
string(REPLACE "\"" "\\\"" text "${text}")
string(REPLACE "\n" "\\n\"\n\"" text "${text}")
file(WRITE ${OUTPUT} "namespace cb::sim {\nextern const char kBenchPtx[];\nconst char kBenchPtx[] = \"${text}\";\n}\n")
