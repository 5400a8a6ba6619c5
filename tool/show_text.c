#include "show_text.h"
#include "../src/checked.h"

#include <string.h>

enum { MOST_ROWS = 16, MOST_SLICES = 4, LINE = 100, NUMBER = 16, TABLES = 5, GAP = 4 };

typedef struct table {
    const char *title;
    const stack *numbers;
    bool starred; /* numbers that win are marked */
    int cell;     /* characters of a number, with the blank before it */
    int width;
} table;

static void write_number(double number, char text[NUMBER])
{
    snprintf(text, NUMBER, "%.4g", number == 0 ? 0 : number); /* -0 would only distract */
}

static void measure(table *t)
{
    char text[NUMBER];
    t->cell = 0;
    for (int64_t k = 0; k < stack_count(t->numbers); k++) {
        write_number(t->numbers->numbers[k], text);
        t->cell = (int)max_i64(t->cell, (int64_t)strlen(text) + 1 + t->starred);
    }
    t->width = (int)max_i64(t->cell * t->numbers->columns, (int64_t)strlen(t->title));
}

/* Row `row` of a slice, or nothing if the table is shorter. Returns the characters written. */
static int print_row(const table *t, const show_data *data, int64_t plane, int64_t slice,
                     int64_t row, FILE *file)
{
    const stack *s = t->numbers;
    int written = 0;
    if (plane >= s->planes || slice >= s->depth || row >= s->rows)
        return 0;
    for (int64_t column = 0; column < s->columns; column++) {
        char text[NUMBER];
        bool star = t->starred && stack_at(&data->won, plane, slice, row, column) != 0;
        write_number(stack_at(s, plane, slice, row, column), text);
        written += fprintf(file, "%*s%s", t->cell - t->starred, text,
                           star         ? "*"
                           : t->starred ? " "
                                        : "");
    }
    return written;
}

static void print_slices(const table *tables, int count, const show_data *data, int64_t plane,
                         int64_t slice, FILE *file)
{
    int64_t rows = 0;
    for (int k = 0; k < count; k++)
        rows = max_i64(rows, tables[k].numbers->rows);
    for (int64_t row = 0; row < rows; row++) {
        int owed = 0; /* blanks that are written only if something follows */
        for (int k = 0; k < count; k++) {
            bool there = row < tables[k].numbers->rows && slice < tables[k].numbers->depth;
            if (there)
                fprintf(file, "%*s", owed, "");
            int written = there ? print_row(&tables[k], data, plane, slice, row, file) : 0;
            owed = (there ? 0 : owed) + tables[k].width - written + GAP;
        }
        fputc('\n', file);
    }
}

static int total_width(const table *tables, int count)
{
    int width = -GAP;
    for (int k = 0; k < count; k++)
        width += tables[k].width + GAP;
    return width;
}

static void print_titles(const table *tables, int count, FILE *file)
{
    int owed = 0;
    for (int k = 0; k < count; k++) {
        fprintf(file, "%*s%s", owed, "", tables[k].title);
        owed = tables[k].width - (int)strlen(tables[k].title) + GAP;
    }
    fputc('\n', file);
}

static bool is_small(const stack *x)
{
    return x->rows <= MOST_ROWS && x->columns <= LINE && x->planes * x->depth <= MOST_SLICES;
}

void show_text(const show_data *data, FILE *file)
{
    table all[TABLES] = {{.title = data->winners ? "x, * wins" : "x",
                          .numbers = &data->x,
                          .starred = data->winners != NULL},
                         {.title = "y", .numbers = &data->y},
                         {.title = "gx", .numbers = &data->gx},
                         {.title = "dx", .numbers = &data->dx},
                         {.title = "dy", .numbers = &data->dy}};
    int count = !is_small(&data->x) ? 0 : data->dx.numbers ? TABLES : TABLES - 2;
    for (int k = 0; k < count; k++)
        measure(&all[k]);
    while (count > 0 && total_width(all, count) > LINE)
        count--;
    if (count > 0)
        print_titles(all, count, file);
    for (int64_t k = 0; k < data->x.planes * data->x.depth && count > 0; k++) {
        if (k > 0)
            fputc('\n', file);
        print_slices(all, count, data, k / data->x.depth, k % data->x.depth, file);
    }
}
