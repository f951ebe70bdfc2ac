typedef unsigned char uint8_t;
typedef unsigned uint32_t;
typedef unsigned long uint64_t, uintptr_t;
typedef long int64_t;
#define UINT32_C(c) c##U
#define UINT64_C(c) c##UL
