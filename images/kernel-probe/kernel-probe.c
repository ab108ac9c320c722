/*
 * Tries, from inside a sandbox, the parts of the kernel that no namespace covers. It prints a letter for each part that it reaches, then a
 * dot. The 32-bit call comes last: a kernel without 32-bit calls ends the program there, after the first dot.
 *
 * It uses no library, so that it runs in every image. Build: images/kernel-probe/build.sh
 */
#define AF_NETLINK 16
#define AF_ALG 38
#define AF_VSOCK 40
#define EPERM 1
#define ENOSYS 38

#if defined(__x86_64__)
enum { WRITE = 1, SOCKET = 41, EXIT = 60, IO_SETUP = 206, IO_URING_SETUP = 425, X32 = 0x40000000, SOCKETCALL = 102 };

static long call(long number, long a, long b, long c) {
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return result;
}

/* In static memory, whose address fits into 32 bits. */
static const unsigned socket_arguments[3] = {AF_VSOCK, 1, 0};

static long socketcall(void) {
  int result;
  __asm__ volatile("int $0x80"
                   : "=a"(result)
                   : "a"(SOCKETCALL), "b"(1), "c"(socket_arguments)
                   : "memory", "r8", "r9", "r10", "r11");
  return result;
}
#elif defined(__aarch64__)
enum { WRITE = 64, SOCKET = 198, EXIT = 93, IO_SETUP = 0, IO_URING_SETUP = 425 };

static long call(long number, long a, long b, long c) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
  return x0;
}
#else
#error "no system calls for this architecture"
#endif

static void say(char letter) {
  char text[1] = {letter};
  call(WRITE, 1, (long)text, 1);
}

static void say_if(char letter, int reached) {
  if (reached) say(letter);
}

/* A call without arguments does nothing. Any other result than these comes from the call itself. */
static int answers(long result) {
  return result != -EPERM && result != -ENOSYS;
}

void _start(void) {
  say_if('v', call(SOCKET, AF_VSOCK, 1, 0) >= 0);
  say_if('g', call(SOCKET, AF_ALG, 5, 0) >= 0);
  say_if('n', call(SOCKET, AF_NETLINK, 3, 15) >= 0);
  say_if('u', answers(call(IO_URING_SETUP, 0, 0, 0)));
  say_if('a', answers(call(IO_SETUP, 0, 0, 0)));
#if defined(__x86_64__)
  say_if('x', call(X32 | SOCKET, AF_VSOCK, 1, 0) >= 0);
  say('.');
  say_if('s', socketcall() >= 0);
#endif
  say('.');
  call(EXIT, 0, 0, 0);
  __builtin_unreachable();
}
