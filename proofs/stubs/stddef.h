typedef unsigned long size_t;
#define NULL 0
