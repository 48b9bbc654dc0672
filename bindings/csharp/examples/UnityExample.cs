// A component that answers without holding up a frame. Put SitsOptima.dll (or the sources) and
// libsitsoptima.so into Assets/Plugins, and the model into StreamingAssets.
//
// Nothing here blocks: Update takes what has been generated since the last frame, on Unity's own
// thread, so that the handler may touch scene objects. Opening a model maps the file; a large one
// is better opened behind a loading screen.
using System;
using SitsOptima;
using UnityEngine;

public class UnityExample : MonoBehaviour
{
    public string modelPath = "model.gguf";
    public string question = "Who are you?";

    private Engine engine;
    private Model model;
    private Session session;
    private Request request;

    /// <summary>The answer so far.</summary>
    public string Answer { get; private set; }

    /// <summary>Whether it is whole.</summary>
    public bool Done { get; private set; }

    public void Start()
    {
        Answer = "";
        // Half of the cores, and a lower priority: the frame rate comes first.
        engine = new Engine(new EngineOptions
        {
            Threads = Math.Max(1, SystemInfo.processorCount / 2),
            Priority = 10,
        });
        string path = System.IO.Path.Combine(Application.streamingAssetsPath, modelPath);
        model = engine.OpenModel(path);
        session = model.CreateSession();
        string prompt = model.ChatTemplate.Length == 0
            ? question : model.RenderChat(new ChatMessage("user", question));
        request = session.Submit(new RequestOptions(prompt) { MaxTokens = 128 }, OnReceived);
    }

    public void Update()
    {
        if (!Done) engine.Poll(TimeSpan.Zero);
    }

    public void OnDestroy()
    {
        // What still runs is cancelled. Fields are null where Start failed.
        if (request != null) request.Dispose();
        if (session != null) session.Dispose();
        if (model != null) model.Dispose();
        if (engine != null) engine.Dispose();
    }

    private void OnReceived(object sender, GenerationEvent e)
    {
        Answer += e.Text;
        if (e.Type != EventType.Done) return;
        Done = true;
        if (e.Status != Status.Ok) Debug.Log("the answer failed: " + e.Status);
    }
}
