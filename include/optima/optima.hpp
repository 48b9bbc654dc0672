// SITS-Optima for C++17 and newer: handles that destroy themselves, typed options and errors, a
// range of events. Header only, over the C API of optima.h; needs libsitsoptima.so.1 of any
// release, and says VERSION for what an older one has not.
//
//   auto engine = optima::Engine::create();
//   auto model = optima::Model::open(engine, "model.gguf");
//   auto session = optima::Session::create(model);
//   std::cout << session.generate("The capital of France is").text();
//
// Lifetimes. An object keeps what it was made from: they may be destroyed in any order. Views
// (std::string_view, Slice) say of what they are views.
// Errors. Calls that can fail throw an ErrorOf their status, with the numbers. With
// OPTIMA_NO_EXCEPTIONS, or where the compiler has no exceptions, they return Expected<T>.
// Exceptions of callbacks come out of the call that called back.
// Threads. Engine, Model and Cancel may be used from any thread; a Session, a Request and a Result
// by one thread at a time, but for what says otherwise. Loading. The program links the library;
// with OPTIMA_LOAD it opens it at run time (optima::load).
#pragma once

#include "optima/cpp/session.hpp"
