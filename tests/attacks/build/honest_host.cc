// expect: ok
#include <pthread.h>
#include <sys/mman.h>
#include <thread>
#include <immintrin.h>
#include <bits/stdc++.h>
#include <linux/futex.h>
extern "C" int cb_setup() { return 0; }
extern "C" int cb_run() { return 0; }
extern "C" void cb_teardown() {}
