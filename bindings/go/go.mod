module optima

go 1.19
