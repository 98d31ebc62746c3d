module jobs

go 1.19
